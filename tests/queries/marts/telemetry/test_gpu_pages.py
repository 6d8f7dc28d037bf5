"""What the pages of nodes and GPUs ask: inventory, allocations, categories, events, gaps."""

import pytest
from tests.queries.conftest import START, Evidence

from goodput_queries.scope import Scope

START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
FIRST, SECOND = "GPU-first", "GPU-second"


@pytest.fixture(scope="module")
def store(shared_evidence):
    """Give two GPUs in a node: a job holds both for half an hour, one is read with a hole."""
    made = shared_evidence
    made.add(
        "gpus", *(
            {"gpu_uuid": gpu, "gpu_index": i, "slurm_index": i, "pci_bus_id": f"00000000:{i}0:00.0"}
            for i, gpu in enumerate((FIRST, SECOND))
        ),
        node="n", gpu_model="h100", valid_from_at=START, power_limit_w=700.0,
    )  # fmt: skip
    made.watched(HOUR_MS / 1000)
    made.job("7", 0, 1800, ["n"], 2, job_name="train")
    read = [s for s in range(0, 3601, 60) if not 600 < s < 1200]
    rows = [
        {"gpu_uuid": FIRST, "gpu_instance": "", "ts": made.at(s),
         "engine_active_ratio": 0.9 * (s <= 1800), "power_w": 300.0, "gpu_temperature_c": 60.0}
        for s in read
    ]  # fmt: skip
    made.load("gpu_samples", rows, "dcgm")
    made.xid("n", 79, 900, pci_bus_id="00000000:10:00.0", message="<b>off</b>")
    made.xid("n", 63, 1000, gpu_uuid=FIRST, message="remap")
    made.build()
    return made.store


def rows(store, view, **scope):
    window = {"from_ms": START_MS, "to_ms": START_MS + HOUR_MS}
    found = store.read(f"from marts.{view} order by all", scope=Scope(**{**window, **scope}))
    return found.to_dicts()


def test_the_inventory_has_limits_and_the_last_reading(store):
    first, second = rows(store, "gpus", node="n")

    assert (first["gpu_index"], first["power_limit_w"]) == (0, 700.0)
    assert first["last_reading_at"] == Evidence.at(3600)
    assert second["last_reading_at"] is None


def test_an_allocation_is_cut_at_the_window(store):
    begin = START_MS + 600_000

    (held,) = rows(store, "gpu_allocations", gpu_uuid=FIRST, from_ms=begin)

    assert (held["start_at"], held["end_at"]) == (Evidence.at(600), Evidence.at(1800))
    assert (held["job_name"], held["run_id"], held["node"]) == ("train", "7", "n")


@pytest.mark.parametrize("from_s", [0, 700])
@pytest.mark.parametrize("bucket_ms", [900_000, HOUR_MS, 2 * HOUR_MS])
def test_bins_of_a_node_are_the_sums_of_its_gpus(store, from_s, bucket_ms):
    """A window that begins inside of segments, and bins that cut them; bins of whole hours."""
    window = {"from_ms": START_MS + 1000 * from_s, "bucket_ms": bucket_ms}
    sums = {}
    for row in rows(store, "category_bins", **window):
        key = row["node"], row["start_ms"], row["category"]
        sums[key] = sums.get(key, 0) + row["gpu_ms"]

    found = rows(store, "node_category_bins", **window)

    assert {(r["node"], r["start_ms"], r["category"]): r["gpu_ms"] for r in found} == sums
    assert sum(sums.values()) == 2 * (HOUR_MS - 1000 * from_s)


def test_time_without_readings_is_a_gap(store):
    """A reading covers back at most 2.5 intervals of 60 s: the one at 1200 s to 1050 s."""
    gaps = [
        (row["gpu_uuid"], row["start_ms"] - START_MS, row["end_ms"] - START_MS)
        for row in rows(store, "telemetry_gaps")
    ]

    assert gaps == [(FIRST, 600_000, 1_050_000), (SECOND, 0, HOUR_MS)]


def test_a_node_adds_up_its_gpus(store):
    (node,) = rows(store, "nodes")

    assert (node["gpus"], node["read_gpus"], node["events"]) == (2, 1, 1)
    assert (node["capacity_ms"], node["held_ms"]) == (2 * HOUR_MS, HOUR_MS)
    assert (node["power_w"], node["gpu_temperature_c"]) == (300.0, 60.0)
    assert node["thermal_s"] is None
