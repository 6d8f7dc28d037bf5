# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""What exporters' series become: names, units, labels, and the rules of their traps."""

from __future__ import annotations

import csv
import math
from datetime import datetime, timedelta
from importlib import resources
from typing import Any, get_args

import polars as pl
import pytest

from goodput_ingest.gpu_metrics import (
    COUNTERS_FILE,
    Memory,
    gpu_rows,
    labels,
    missing_counters,
    resolve,
)
from goodput_ingest.gpu_metrics.catalogue import WIDE, Kind, OnMig
from goodput_queries import catalog

START = datetime(2026, 11, 20, 12)
GPU = {"UUID": "GPU-a", "gpu": "0", "Hostname": "n1", "modelName": "H100"}
BLANKS = [2147483632, 2147483635, 9223372036854775792, 9223372036854775795, 140737488355328.0]

Line = tuple[str, dict[str, str], float, float]  # name, labels, seconds after START, value


def rows(
    lines: list[Line], memory: Memory | None = None, node: str | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each raw table that the lines give."""
    sets = [line[1] for line in lines]
    names = sorted({name for one in sets for name in one}) or ["gpu"]
    label_sets = pl.DataFrame(
        {name: [one.get(name) for one in sets] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )
    numbers = pl.Series(range(len(lines)), dtype=pl.UInt32)
    points = pl.DataFrame(
        {
            "series": numbers,
            "ts": [START + timedelta(seconds=s) for _, _, s, _ in lines],
            "value": pl.Series([float(value) for *_, value in lines], dtype=pl.Float64),
        }
    )
    series = pl.DataFrame({"metric": [line[0] for line in lines], "labels": numbers})
    found = gpu_rows(
        points, series, labels.normalise(label_sets, node=node), source="test", memory=memory
    )
    return {parsed.table: parsed.rows.rows(named=True) for parsed in found}


def one(name: str, value: float, **more: str) -> dict[str, Any]:
    """Return the wide row that a single series gives."""
    (row,) = rows([(name, {**GPU, **more}, 0, value)])["gpu_samples"]
    return row


def other(lines: list[Line], memory: Memory | None = None) -> dict[tuple[str, str], float]:
    found = rows(lines, memory).get("gpu_samples_other", [])
    return {(row["gpu_instance"], row["metric"]): row["value"] for row in found}


# names and units


@pytest.mark.parametrize(
    ("name", "raw", "column", "value"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", 97, "gpu_busy_ratio", 0.97),
        ("dcgm_gpu_utilization", 97, "gpu_busy_ratio", 0.97),
        ("nvidia_smi_utilization_gpu_ratio", 0.97, "gpu_busy_ratio", 0.97),
        ("gpu_gfx_activity", 97, "gpu_busy_ratio", 0.97),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5, "engine_active_ratio", 0.5),
        ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 0.5, "engine_active_ratio", 0.5),
        ("dcgm_fi_prof_gr_engine_active", 0.5, "engine_active_ratio", 0.5),
        ("gpu_prof_sm_active", 50, "sm_active_ratio", 0.5),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 918273645546, "energy_j", 918273645.546),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 918273645.546, "energy_j", 918273645.546),
        ("gpu_energy_consumed", 2e6, "energy_j", 2.0),
        ("DCGM_FI_DEV_SM_CLOCK", 1980, "sm_clock_hz", 1.98e9),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1.98e9, "sm_clock_hz", 1.98e9),
        ("nvidia_smi_clocks_current_sm_clock_hz", 1.98e9, "sm_clock_hz", 1.98e9),
        ("DCGM_FI_DEV_FB_USED", 2, "memory_used_bytes", 2 * 2**20),
        ("DCGM_FI_DEV_FB_USED_BYTES", 2, "memory_used_bytes", 2),
        ("gpu_used_vram", 68702, "memory_used_bytes", 68_702_000_000),
        ("DCGM_FI_DEV_BOARD_POWER_WATTS", 642.318, "power_w", 642.318),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 4, "clocks_event_reasons", 4),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 5e9, "pcie_tx_bytes_per_s", 5e9),
    ],
)
def test_names_of_all_exporters_and_releases_meet_in_one_column(
    name: str, raw: float, column: str, value: float
) -> None:
    assert one(name, raw)[column] == value


@pytest.mark.parametrize(
    ("name", "raw", "metric", "value"),
    [
        ("DCGM_FI_DEV_POWER_VIOLATION", 5e9, "throttle_power_s", 5.0),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", 5e9, "throttle_power_s", 5.0),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 2, "nvlink_total_bytes_per_s", 2_048_000.0),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", 2, "nvlink_total_bytes_per_s", 2_048_000.0),
        ("DCGM_FI_DEV_FB_USED_PERCENT", 0.25, "memory_used_ratio", 0.25),
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", 1, "row_remap_failed", 1.0),
        ("DCGM_FI_DEV_NEW_IN_5_0", 7, "DCGM_FI_DEV_NEW_IN_5_0", 7.0),
        ("DCGM_FI_DEV_ECC_CURRENT", 1, "DCGM_FI_DEV_ECC_MODE", 1.0),
        ("something_of_a_gpu", 7, "something_of_a_gpu", 7.0),
    ],
)
def test_what_has_no_column_is_kept_beside_it_known_or_not(
    name: str, raw: float, metric: str, value: float
) -> None:
    assert other([(name, GPU, 0, raw)]) == {("", metric): value}


def test_a_rate_is_a_rate_whatever_type_says() -> None:
    metric = resolve("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")

    assert metric is not None
    assert metric.kind == "rate"


def test_openmetrics_suffix_of_counters_is_looked_through() -> None:
    assert resolve("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total") == resolve(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    )


def test_amd_names_are_known_behind_a_sites_prefix() -> None:
    assert resolve("amd_site_gpu_package_power") == resolve("gpu_package_power")


@pytest.mark.parametrize("name", ["go_goroutines", "node_load1", "nccl_bus_bw", "up", ""])
def test_other_exporters_names_are_not_of_gpus(name: str) -> None:
    assert resolve(name) is None


def test_the_catalogue_speaks_of_columns_that_there_are() -> None:
    columns = {
        line.split()[0]
        for line in catalog.models("raw")["gpu_samples"].sql.splitlines()
        if line.startswith("    ")
    }
    text = resources.files("goodput_ingest.gpu_metrics").joinpath("catalogue.csv").read_text()
    entries = list(csv.DictReader(text.splitlines()))

    assert set(WIDE) <= columns
    assert set(WIDE) <= {entry["metric"] for entry in entries}
    assert {entry["kind"] for entry in entries} <= set(get_args(Kind))
    assert {entry["on_mig"] for entry in entries} <= set(get_args(OnMig))
    assert len({entry["raw_name"] for entry in entries}) == len(entries)


def test_names_of_one_metric_agree_on_what_it_is() -> None:
    text = resources.files("goodput_ingest.gpu_metrics").joinpath("catalogue.csv").read_text()
    kinds: dict[str, set[tuple[str, ...]]] = {}
    for entry in csv.DictReader(text.splitlines()):
        facts = (entry["kind"], entry["low"], entry["high"], entry["on_mig"])
        kinds.setdefault(entry["metric"], set()).add(facts)

    assert {metric: facts for metric, facts in kinds.items() if len(facts) > 1} == {}


# values that are none


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy_j"),
        ("DCGM_FI_DEV_GPU_TEMP", "gpu_temperature_c"),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "clocks_event_reasons"),
    ],
)
def test_what_dcgm_prints_for_no_value_is_null_and_flagged(
    name: str, column: str, blank: float
) -> None:
    row = one(name, blank)

    assert row.get(column) is None
    assert row["is_flagged"]


@pytest.mark.parametrize("value", [101, -1, 4294967295, math.nan, math.inf])
def test_a_share_that_cannot_be_is_null_and_flagged_never_clamped(value: float) -> None:
    row = one("DCGM_FI_DEV_GPU_UTIL", value)

    assert row.get("gpu_busy_ratio") is None
    assert row["is_flagged"]


def test_rounding_over_one_is_one() -> None:
    row = one("DCGM_FI_PROF_SM_ACTIVE", 1.00004)

    assert (row["sm_active_ratio"], row["is_flagged"]) == (1.0, False)


def test_a_memory_temperature_of_zero_is_no_sensor() -> None:
    row = one("DCGM_FI_DEV_MEMORY_TEMP", 0)

    assert (row.get("memory_temperature_c"), row["is_flagged"]) == (None, False)


def test_zero_is_measured() -> None:
    assert one("DCGM_FI_PROF_SM_ACTIVE", 0)["sm_active_ratio"] == 0.0


# percent or ratio


def test_a_ratio_name_with_percents_is_percents_from_the_first_value_over_one() -> None:
    name = "DCGM_FI_DEV_GPU_UTIL_RATIO"
    memory = Memory()

    open_yet = rows([(name, GPU, 0, 1), (name, GPU, 30, 0)], memory)
    decided = rows([(name, GPU, 60, 97), (name, GPU, 90, 1)], memory)
    later = rows([(name, GPU, 120, 1)], memory)

    assert "gpu_samples" not in open_yet
    assert [r["value"] for r in open_yet["gpu_samples_other"] if r["metric"] == name] == [1.0, 0.0]
    assert [r["gpu_busy_ratio"] for r in decided["gpu_samples"]] == [0.97, 0.01]
    assert [r["gpu_busy_ratio"] for r in later["gpu_samples"]] == [0.01]


def test_a_ratio_name_with_a_fraction_is_a_ratio() -> None:
    name = "DCGM_FI_DEV_GPU_UTIL_RATIO"

    found = rows([(name, GPU, 0, 0.5), (name, GPU, 30, 1)])

    assert [row["gpu_busy_ratio"] for row in found["gpu_samples"]] == [0.5, 1.0]


def test_percent_or_ratio_is_decided_node_by_node() -> None:
    name = "DCGM_FI_DEV_GPU_UTIL_RATIO"
    elsewhere = {**GPU, "UUID": "GPU-b", "Hostname": "n2"}

    found = rows([(name, GPU, 0, 50), (name, elsewhere, 0, 1)])

    assert [row["gpu_uuid"] for row in found["gpu_samples"]] == ["GPU-a"]
    assert [row["gpu_uuid"] for row in found["gpu_samples_other"]] == ["GPU-b"]


def test_an_absurd_value_decides_nothing() -> None:
    name = "DCGM_FI_DEV_GPU_UTIL_RATIO"

    assert "gpu_samples" not in rows([(name, GPU, 0, 4294967295)])


# labels


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"UUID": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"gpu_uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"UUID": "", "gpu_uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        (
            {"uuid": "6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"},  # the nvidia-smi exporter
            {"gpu_uuid": "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"},
        ),
        (
            {"GPU_UUID": "6699c0a8-4200-4242-037f-f97e6cae0f09"},  # AMD
            {"gpu_uuid": "6699c0a8-4200-4242-037f-f97e6cae0f09"},
        ),
        ({"SERIAL_NUMBER": "6922"}, {"gpu_uuid": "SN-6922"}),
        ({"Hostname": "n1"}, {"node": "n1"}),
        ({"hostname": "n1", "instance": "10.0.0.1:9400"}, {"node": "n1"}),
        ({"Hostname": "localhost", "instance": "n1:9400"}, {"node": "n1"}),
        ({"Hostname": "exp-x", "pod": "exp-x", "node": "n1"}, {"node": "n1"}),
        ({"instance": "n1:9400"}, {"node": "n1"}),
        ({"instance": "localhost:9400"}, {"node": "given"}),
        ({"pci_bus_id": "00000000:9B:00.0"}, {"pci_bus_id": "00000000:9b:00.0"}),
        ({"modelName": "H100"}, {"gpu_model": "H100"}),
        ({"model_name": "H100"}, {"gpu_model": "H100"}),
        ({"DCGM_FI_DRIVER_VERSION": "570"}, {"driver_version": "570"}),
        ({"DCGM_FI_SYSTEM_DRIVER_VERSION": "570"}, {"driver_version": "570"}),
        ({"gpu": "3"}, {"gpu_index": 3}),
        ({"gpu": "x"}, {"gpu_index": None}),
        ({"GPU_I_ID": "2", "GPU_I_PROFILE": "3g.40gb"}, {"gpu_instance": "2"}),
        ({"gpu_partition_id": "0", "gpu_compute_partition_type": "spx"}, {"gpu_instance": ""}),
        ({"gpu_partition_id": "1", "gpu_compute_partition_type": "cpx"}, {"gpu_instance": "1"}),
        ({"pod": "p", "namespace": "ns"}, {"pod": "ns/p"}),
        ({"pod_name": "p", "pod_namespace": "ns"}, {"pod": "ns/p"}),  # 1.x
        ({"pod": "", "namespace": "", "container": ""}, {"pod": None, "container": None}),
        (
            {"exported_pod": "p", "exported_namespace": "ns", "pod": "exp", "namespace": "mon"},
            {"pod": "ns/p"},
        ),
        ({"pod": "exp", "namespace": "mon", "container": "nvidia-dcgm-exporter"}, {"pod": None}),
        ({"hpc_job": "4815"}, {"hpc_job": "4815"}),
        ({"job": "dcgm"}, {"hpc_job": None}),
        ({"nvlink": "3", "gpu_uuid": "GPU-a"}, {"part": 'nvlink="3"'}),
        ({"UUID": "GPU-\x1b[2J"}, {"gpu_uuid": "GPU-\ufffd[2J"}),
        ({"pod": "p" * 9999}, {"pod": "p" * labels.TEXT_MAX_CHARS}),
    ],
)
def test_labels_in_every_spelling(given: dict[str, str], expected: dict[str, object]) -> None:
    frame = pl.DataFrame({name: [value] for name, value in given.items()})

    (row,) = labels.normalise(frame, node="given").rows(named=True)

    assert {name: row[name] for name in expected} == expected


def test_where_prometheus_renamed_once_plain_pods_are_the_exporters_in_the_whole_job() -> None:
    frame = pl.DataFrame(
        {
            "job": ["dcgm", "dcgm", "other"],
            "pod": ["exp-1", "exp-2", "train-0"],
            "exported_pod": ["llm-0", None, None],
        }
    )

    assert labels.normalise(frame)["pod"].to_list() == ["llm-0", None, "train-0"]


# copies, instances, parts


def test_a_series_copied_for_each_job_is_one_reading() -> None:
    power = "DCGM_FI_DEV_POWER_USAGE"

    found = rows([(power, {**GPU, "hpc_job": str(job)}, 0, 600) for job in (1, 2, 3)])

    assert [row["power_w"] for row in found["gpu_samples"]] == [600.0]
    assert {row["owner"] for row in found["gpu_owners"]} == {"1", "2", "3"}


def test_the_device_series_beside_shares_of_its_pods_is_what_counts() -> None:
    util = "DCGM_FI_DEV_GPU_UTIL"
    of_pods = [(util, {**GPU, "pod": pod}, 0, value) for pod, value in (("a", 30), ("b", 20))]

    found = rows([(util, GPU, 0, 50), *of_pods])

    assert [row["gpu_busy_ratio"] for row in found["gpu_samples"]] == [0.5]


def mig(name: str, values: dict[str, float]) -> list[Line]:
    return [
        (name, {**GPU, "GPU_I_ID": i, "GPU_I_PROFILE": "1g.10gb"}, 0, value)
        for i, value in values.items()
    ]


def test_whole_gpu_readings_that_repeat_on_mig_instances_are_one() -> None:
    energy = mig("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", dict.fromkeys("1234", 9000))
    active = mig("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {"1": 0.5, "2": 0.0, "3": 0.25, "4": 1.0})

    found = rows([*energy, *active])["gpu_samples"]

    assert {r["gpu_instance"]: r["energy_j"] for r in found if r["energy_j"]} == {"": 9.0}
    assert {r["gpu_instance"]: r["engine_active_ratio"] for r in found if r["gpu_instance"]} == {
        "1": 0.5, "2": 0.0, "3": 0.25, "4": 1.0,
    }  # fmt: skip


def test_gpu_util_of_a_mig_instance_is_not_zero_but_not_measured() -> None:
    lines = [
        *mig("DCGM_FI_DEV_GPU_UTIL", {"1": 0}),
        *mig("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {"1": 0.5}),
    ]

    (row,) = rows(lines)["gpu_samples"]

    assert row.get("gpu_busy_ratio") is None
    assert row["engine_active_ratio"] == 0.5


def test_of_amd_partitions_only_the_first_has_sensors() -> None:
    amd = {"gpu_uuid": "a", "hostname": "n1", "gpu_compute_partition_type": "cpx"}
    lines: list[Line] = [
        ("gpu_package_power", {**amd, "gpu_partition_id": "0"}, 0, 500),
        ("gpu_package_power", {**amd, "gpu_partition_id": "1"}, 0, 999),
        ("gpu_prof_sm_active", {**amd, "gpu_partition_id": "1"}, 0, 40),
    ]

    found = rows(lines)["gpu_samples"]

    assert {r["gpu_instance"]: r.get("power_w") for r in found} == {"": 500.0, "1": None}
    assert {r["gpu_instance"]: r["sm_active_ratio"] for r in found} == {"": None, "1": 0.4}


def test_a_clock_of_amd_goes_by_its_type() -> None:
    lines: list[Line] = [
        ("gpu_clock", {**GPU, "clock_type": f"GPU_CLOCK_TYPE_{kind}", "clock_index": "0"}, 0, mhz)
        for kind, mhz in (("SYSTEM", 2100), ("MEMORY", 1300), ("VIDEO", 900))
    ]

    (row,) = rows(lines)["gpu_samples"]

    assert (row["sm_clock_hz"], row["memory_clock_hz"]) == (2.1e9, 1.3e9)
    assert other(lines) == {
        ("", 'gpu_clock{clock_index="0",clock_type="GPU_CLOCK_TYPE_VIDEO"}'): 900.0
    }


def test_one_link_of_many_is_not_the_gpus_traffic() -> None:
    name = "DCGM_FI_PROF_NVLINK_TX_BYTES"

    found = other([(name, {**GPU, "nvlink": str(link)}, 0, link) for link in (0, 1)])

    assert found == {
        ("", 'nvlink_tx_bytes_per_s{nvlink="0"}'): 0.0,
        ("", 'nvlink_tx_bytes_per_s{nvlink="1"}'): 1.0,
    }


def test_clock_events_of_a_window_are_kept_apart_by_event() -> None:
    name = "DCGM_EXP_CLOCK_EVENTS_COUNT"
    lines = [(name, {**GPU, "clock_event": e}, 0.0, 3.0) for e in ("power_cap", "hw_thermal")]

    assert set(other(lines)) == {
        ("", 'clock_events_in_window{clock_event="power_cap"}'),
        ("", 'clock_events_in_window{clock_event="hw_thermal"}'),
    }


def test_a_series_of_no_gpu_is_named_but_the_exporters_own_are_not() -> None:
    sets = labels.normalise(pl.DataFrame({"gpu": [None, None]}, schema={"gpu": pl.String}))
    series = pl.DataFrame({"metric": ["gpu_nodes_total", "go_threads"], "labels": [0, 1]})
    points = pl.DataFrame({"series": [0, 1], "ts": [START, START], "value": [1.0, 1.0]})

    (parsed,) = gpu_rows(points, series, sets, source="test")

    assert parsed.rows.is_empty()
    assert [reject.content for reject in parsed.rejects] == ["gpu_nodes_total"]


# the inventory


def test_a_gpu_is_told_when_it_is_new_or_something_about_it_changes() -> None:
    power, memory = "DCGM_FI_DEV_POWER_USAGE", Memory()
    moved = {**GPU, "Hostname": "n2"}

    told = [
        rows([(power, gpu, seconds, 600)], memory).get("gpus", [])
        for seconds, gpu in enumerate((GPU, GPU, moved, moved))
    ]

    assert [[row["node"] for row in one] for one in told] == [["n1"], [], ["n2"], []]
    assert told[2][0]["valid_from_at"] == START + timedelta(seconds=2)


def test_facts_of_a_gpu_come_from_labels_and_values() -> None:
    lines: list[Line] = [
        ("DCGM_FI_DEV_FB_TOTAL", {**GPU, "pci_bus_id": "00000000:19:00.0"}, 0, 81559),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", GPU, 0, 700),
    ]

    (gpu,) = rows(lines)["gpus"]

    assert (gpu["node"], gpu["gpu_index"], gpu["gpu_model"]) == ("n1", 0, "H100")
    assert (gpu["pci_bus_id"], gpu["power_limit_w"]) == ("00000000:19:00.0", 700.0)
    assert gpu["memory_bytes"] == 81559 * 2**20


def test_a_gpu_whose_node_nobody_says_has_readings_but_no_place() -> None:
    lines: list[Line] = [("nvidia_smi_power_draw_watts", {"uuid": "GPU-a"}, 0, 70)]

    assert "gpus" not in rows(lines)
    assert rows(lines)["gpu_samples"][0]["power_w"] == 70.0
    assert rows(lines, node="n1")["gpus"][0]["node"] == "n1"


# owners


def owned(lines: list[Line], memory: Memory | None = None) -> list[tuple[str, float, float]]:
    return [
        (
            row["owner"],
            (row["first_seen_at"] - START).total_seconds(),
            (row["last_seen_at"] - START).total_seconds(),
        )
        for row in rows(lines, memory).get("gpu_owners", [])
    ]


def power(seconds: float, **more: str) -> Line:
    return ("DCGM_FI_DEV_POWER_USAGE", {**GPU, **more}, seconds, 600)


def test_an_owner_is_from_the_first_reading_with_its_label_to_the_last() -> None:
    lines = [power(0), *(power(s, hpc_job="7") for s in (30, 60, 90)), power(120)]

    assert owned(lines) == [("7", 30, 90)]


def test_a_reading_without_the_label_and_a_hole_both_end_a_stretch() -> None:
    lines = [
        *(power(s, hpc_job="7") for s in (0, 30)),
        power(60),
        *(power(s, hpc_job="7") for s in (90, 120, 600, 630)),
    ]

    assert owned(lines) == [("7", 0, 30), ("7", 90, 120), ("7", 600, 630)]


def test_an_owner_goes_on_from_poll_to_poll_as_one_stretch() -> None:
    memory = Memory()

    polls = [owned([power(s, hpc_job="7")], memory) for s in (0, 30, 60)]
    other_owner = owned([power(90, hpc_job="8")], memory)
    again = owned([power(120, hpc_job="7")], memory)

    assert polls == [[("7", 0, 0)], [("7", 0, 30)], [("7", 0, 60)]]
    assert other_owner == [("8", 90, 90)]
    assert again == [("7", 120, 120)]


def test_an_outage_of_ours_ends_a_stretch() -> None:
    memory = Memory()

    owned([power(0, hpc_job="7"), power(30, hpc_job="7")], memory)

    assert owned([power(3600, hpc_job="7")], memory) == [("7", 3600, 3600)]


def test_pods_and_jobs_are_owners_of_instances_too() -> None:
    lines = mig("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {"1": 0.5})
    labelled: list[Line] = [
        (name, {**one_set, "pod": "p", "namespace": "ns", "container": "c"}, s, value)
        for name, one_set, s, value in lines
    ]

    (row,) = rows(labelled)["gpu_owners"]

    assert (row["gpu_instance"], row["kind"], row["owner"], row["container"]) == (
        "1", "pod", "ns/p", "c",
    )  # fmt: skip


# Xids


def xids(lines: list[Line], memory: Memory | None = None) -> list[tuple[float, int, str]]:
    return [
        ((row["ts"] - START).total_seconds(), row["code"], row["ts_precision"])
        for row in rows(lines, memory).get("gpu_events", [])
    ]


def xid(seconds: float, code: float, **more: str) -> Line:
    return ("DCGM_FI_DEV_XID_ERRORS", {**GPU, **more}, seconds, code)


def test_a_change_of_the_latch_is_an_event() -> None:
    lines = [xid(0, 0), xid(30, 31), xid(60, 31), xid(90, 79), xid(120, 79)]

    assert xids(lines) == [(30, 31, "approximate"), (90, 79, "approximate")]


def test_a_latch_that_was_set_when_we_came_is_not_dated() -> None:
    assert xids([xid(0, 79), xid(30, 79)]) == [(0, 79, "at_or_before")]


def test_a_latch_that_appears_on_a_gpu_we_watched_is_an_event() -> None:
    lines = [power(0), power(30), power(60), xid(60, 94, err_code="94", err_msg="Contained ECC")]

    assert xids(lines) == [(60, 94, "approximate")]
    assert rows(lines)["gpu_events"][0]["message"] == "Contained ECC"


def test_after_a_hole_the_same_code_is_the_old_event_and_another_is_not_dated() -> None:
    before = [xid(seconds, 13) for seconds in (0, 30, 60)]

    assert xids([*before, xid(3600, 13)]) == [(0, 13, "at_or_before")]
    assert xids([*before, xid(3600, 79)]) == [(0, 13, "at_or_before"), (3600, 79, "at_or_before")]


def test_a_missing_gauge_does_not_make_its_code_new() -> None:
    lines = [xid(0, 13), power(30), xid(60, 13)]

    assert xids(lines) == [(0, 13, "at_or_before")]


def test_the_latch_is_remembered_from_poll_to_poll() -> None:
    memory = Memory()

    polls = [xids([xid(s, code)], memory) for s, code in ((0, 0), (30, 79), (60, 79), (90, 0))]
    again = xids([xid(120, 79)], memory)

    assert polls == [[], [(30, 79, "approximate")], [], []]
    assert again == [(120, 79, "approximate")]


def test_an_xid_on_a_mig_gpu_is_one_event_of_the_gpu() -> None:
    memory = Memory()
    instances = [{"GPU_I_ID": i, "GPU_I_PROFILE": "1g.10gb"} for i in "12"]

    polls = [
        xids([xid(seconds, code, **one_set) for one_set in instances], memory)
        for seconds, code in ((0, 0), (30, 79))
    ]

    assert polls == [[], [(30, 79, "approximate")]]


def test_a_blank_is_no_xid() -> None:
    assert xids([xid(0, 0), xid(30, 2147483632)]) == []


# recommended counters


def test_the_recommended_counters_are_known_to_us_and_well_formed() -> None:
    lines = [x for x in COUNTERS_FILE.read_text().splitlines() if x and not x.startswith("#")]
    fields = [line.split(",")[0].strip() for line in lines]

    assert {line.split(",")[1].strip() for line in lines} == {"gauge", "counter", "label"}
    assert len(set(fields)) == len(fields)
    for field in fields[:-1]:
        metric = resolve(field)
        assert metric is not None
        assert metric.kind != "unknown", field


def test_counters_that_are_off_are_told_with_the_line_to_add() -> None:
    fields = [
        line.split(",")[0]
        for line in COUNTERS_FILE.read_text().splitlines()
        if line.startswith("DCGM")
    ]
    without = [f for f in fields if f != "DCGM_FI_PROF_SM_ACTIVE"]

    assert missing_counters(fields) == []
    (line,) = missing_counters(without)
    assert line.startswith("DCGM_FI_PROF_SM_ACTIVE, gauge, ")
    assert missing_counters([*without, "DCGM_FI_PROF_SM_UTIL_RATIO"]) == []  # its new name
    assert missing_counters(["nvidia_smi_power_draw_watts"]) == []
