"""What the pages of nodes and GPUs ask: inventory, allocations, categories, events, gaps."""

import pytest
from tests.queries.conftest import START_MS, at, built_once, read_from_world

from goodput_queries.scope import Scope

HOUR_MS = 3_600_000
FIRST, SECOND = "GPU-first", "GPU-second"


@built_once
def world(made):
    """Give two GPUs in a node: a job holds both for half an hour, one is read with a hole."""
    for i, gpu in enumerate((FIRST, SECOND)):
        made.listed("n", gpu, "test", gpu_index=i, slurm_index=i, power_limit_w=700.0,
                    pci_bus_id=f"00000000:{i}0:00.0")  # fmt: skip
    made.watched(HOUR_MS / 1000)
    made.job("7", 0, 1800, ["n"], 2, job_name="train")
    made.readings(FIRST, [s for s in range(0, 3601, 60) if not 600 < s < 1200], power_w=300.0,
                  engine_active_ratio=lambda s: 0.9 * (s <= 1800),
                  gpu_temperature_c=60.0)  # fmt: skip
    made.xid("n", 79, 900, pci_bus_id="00000000:10:00.0", message="<b>off</b>")
    made.xid("n", 63, 1000, gpu_uuid=FIRST, message="remap")


HOUR = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)
test_what_is_shown_of_gpus = read_from_world({
    "the inventory has limits and the last reading": (
        "select gpu_index, power_limit_w, last_reading_at from marts.gpus order by 1",
        [(0, 700.0, at(3600)), (1, 700.0, None)]),
    "an allocation is cut at the window": (
        "select start_at, end_at, job_name, run_id, node from marts.gpu_allocations",
        [(at(600), at(1800), "train", "7", "n")],
        Scope(from_ms=START_MS + 600_000, to_ms=START_MS + HOUR_MS, gpu_uuid=FIRST)),
    # a reading covers back at most 2.5 intervals of 60 s: the one at 1200 s to 1050 s
    "time without readings is a gap": (
        f"select gpu_uuid, start_ms - {START_MS}, end_ms - {START_MS} from marts.telemetry_gaps "
        "order by 1", [(FIRST, 600_000, 1_050_000), (SECOND, 0, HOUR_MS)], HOUR),
    "a node adds up its GPUs": (
        "select gpus, read_gpus, events, capacity_ms, held_ms, power_w, gpu_temperature_c, "
        "thermal_s from marts.nodes", [(2, 1, 1, 2 * HOUR_MS, HOUR_MS, 300.0, 60.0, None)], HOUR),
})  # fmt: skip


@pytest.mark.parametrize("from_s", [0, 700])
@pytest.mark.parametrize("bucket_ms", [900_000, HOUR_MS, 2 * HOUR_MS])
def test_bins_of_a_node_are_the_sums_of_its_gpus(world, from_s, bucket_ms):
    """A window that begins inside of segments, and bins that cut them; bins of whole hours."""
    scope = Scope(START_MS + 1000 * from_s, START_MS + HOUR_MS, bucket_ms=bucket_ms)
    columns = "node, start_ms, category, sum(gpu_ms)::bigint as gpu_ms"
    of_gpus, of_nodes = (
        world.read(f"select {columns} from marts.{bins} group by all order by all", scope=scope)
        for bins in ("category_bins", "node_category_bins")
    )

    assert of_nodes.rows() == of_gpus.rows()
    assert of_nodes["gpu_ms"].sum() == 2 * (HOUR_MS - 1000 * from_s)
