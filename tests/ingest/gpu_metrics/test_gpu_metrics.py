"""What exporters' names and labels mean: units, ranges, values that are none, whose they are."""

import csv
import math
from importlib import resources
from typing import get_args

import polars as pl
import pytest
from tests.ingest.gpu_lines import GPU, one, other, rows

from goodput_ingest.gpu_metrics import (
    COUNTERS_FILE,
    Memory,
    catalogue,
    is_exporters,
    labels,
    missing_counters,
    resolve,
)
from goodput_ingest.gpu_metrics.catalogue import WIDE, Kind, OnMig
from goodput_queries.catalog import models

BLANKS = [2147483632, 2147483635, 9223372036854775792, 9223372036854775795, 140737488355328.0]


# names and units


@pytest.mark.parametrize(
    ("name", "raw", "column", "value"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", 97, "gpu_busy_ratio", 0.97),
        ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 0.5, "engine_active_ratio", 0.5),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 918273645.546, "energy_j", 918273645.546),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1.98e9, "sm_clock_hz", 1.98e9),
        ("nvidia_smi_clocks_current_sm_clock_hz", 1.98e9, "sm_clock_hz", 1.98e9),
        ("DCGM_FI_DEV_FB_USED", 2, "memory_used_bytes", 2 * 2**20),
        ("DCGM_FI_DEV_FB_USED_BYTES", 2, "memory_used_bytes", 2),
        ("gpu_used_vram", 68702, "memory_used_bytes", 68_702_000_000),
        ("DCGM_FI_DEV_BOARD_POWER_WATTS", 642.318, "power_w", 642.318),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 4, "clocks_event_reasons", 4),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 5e9, "pcie_tx_bytes_per_s", 5e9),
        ("hw.gpu.memory.usage", 2, "memory_used_bytes", 2),
    ],
)
def test_names_of_all_exporters_and_releases_meet_in_one_column(name, raw, column, value):
    assert one(name, raw)[column] == value


@pytest.mark.parametrize(
    ("name", "raw", "metric", "value"),
    [
        ("DCGM_FI_DEV_POWER_VIOLATION", 5e9, "throttle_power_s", 5.0),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", 5e9, "throttle_power_s", 5.0),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", 2, "nvlink_total_bytes_per_s", 2_048_000.0),
        ("DCGM_FI_DEV_FB_USED_PERCENT", 0.25, "memory_used_ratio", 0.25),
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", 1, "row_remap_failed", 1.0),
        ("DCGM_FI_DEV_NEW_IN_5_0", 7, "DCGM_FI_DEV_NEW_IN_5_0", 7.0),
        ("DCGM_FI_DEV_ECC_CURRENT", 1, "ecc_mode", 1.0),
        ("DCGM_FI_DEV_ECC_MODE", 0, "ecc_mode", 0.0),
        ("DCGM_FI_DEV_COMPUTE_MODE", 1, "DCGM_FI_DEV_GPU_COMPUTE_MODE", 1.0),
        ("something_of_a_gpu", 7, "something_of_a_gpu", 7.0),
    ],
)
def test_what_has_no_column_is_kept_beside_it_known_or_not(name, raw, metric, value):
    assert other([(name, GPU, 0, raw)]) == {("", metric): value}


def test_names_are_known_with_the_suffix_of_openmetrics_and_the_prefix_of_a_site():
    energy, of_amd = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "gpu_package_power"
    for name, known in ((f"{energy}_total", energy), ("amd_site_gpu_package_power", of_amd)):
        assert resolve(name) == resolve(known) is not None, name


@pytest.mark.parametrize(
    ("labels", "stored"),
    [
        ({"hw_type": "gpu"}, [700.0]),
        ({"hw_sensor_location": "package"}, [700.0]),
        ({"hw_type": "power_supply"}, []),
    ],
)
def test_power_that_opentelemetry_reports_is_the_gpus_where_its_label_says_so(labels, stored):
    found = rows([("hw_power_watts", {**GPU, **labels}, 0, 700)])

    assert [row["power_w"] for row in found["gpu_samples"]] == stored
    assert "gpu_samples_other" not in found


def test_every_exporter_of_the_catalogue_is_documented_somewhere():
    exporters = {row["exporter"]: row["source"] for row in catalogue.rows("exporters.csv")}

    named = {row["vendor"] for row in catalogue.rows("catalogue.csv")}
    assert named == exporters.keys()
    assert all(exporters.values())


@pytest.mark.parametrize("name", ["hw_power_watts", "hw_fan_speed", "slurm_job_memory_rss"])
def test_a_name_that_other_hardware_has_makes_no_page_one_of_gpus(name):
    assert not is_exporters(name)


@pytest.mark.parametrize("name", ["go_goroutines", "node_load1", "nccl_bus_bw", "up", ""])
def test_other_exporters_names_are_not_of_gpus(name):
    assert resolve(name) is None


def test_the_catalogue_describes_columns_that_there_are():
    columns = {
        line.split()[0]
        for line in models.of_layer("raw")["gpu_samples"].sql.splitlines()
        if line.startswith("    ")
    }
    text = resources.files("goodput_ingest.gpu_metrics").joinpath("catalogue.csv").read_text()
    entries = list(csv.DictReader(text.splitlines()))

    assert set(WIDE) <= columns
    assert set(WIDE) <= {entry["metric"] for entry in entries}
    assert {entry["kind"] for entry in entries} <= set(get_args(Kind))
    assert {entry["on_mig"] for entry in entries} <= set(get_args(OnMig))
    assert len({entry["raw_name"] for entry in entries}) == len(entries)


def test_names_of_one_metric_agree_on_what_it_is():
    text = resources.files("goodput_ingest.gpu_metrics").joinpath("catalogue.csv").read_text()
    kinds = {}
    for entry in csv.DictReader(text.splitlines()):
        facts = (entry["kind"], entry["low"], entry["high"], entry["on_mig"])
        kinds.setdefault(entry["metric"], set()).add(facts)

    assert {metric: facts for metric, facts in kinds.items() if len(facts) > 1} == {}


# values that are none


ENERGY, TEMPERATURE, SHARE = (
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy_j"),
    ("DCGM_FI_DEV_GPU_TEMP", "gpu_temperature_c"),
    ("DCGM_FI_DEV_GPU_UTIL", "gpu_busy_ratio"),
)
SM_ACTIVE = ("DCGM_FI_PROF_SM_ACTIVE", "sm_active_ratio")


@pytest.mark.parametrize(
    ("name", "column", "raw", "value", "is_flagged"),
    [
        *((*metric, blank, None, True) for metric in (ENERGY, TEMPERATURE) for blank in BLANKS),
        *((*SHARE, raw, None, True) for raw in (101, -1, 4294967295, math.nan, math.inf)),
        (*SM_ACTIVE, 1.00004, 1.0, False),  # rounding
        (*SM_ACTIVE, 0, 0.0, False),  # zero is measured
        ("DCGM_FI_DEV_MEMORY_TEMP", "memory_temperature_c", 0, None, False),  # no sensor
    ],
)
def test_what_cannot_be_is_null_and_flagged_never_clamped(name, column, raw, value, is_flagged):
    row = one(name, raw)

    assert (row.get(column), row["is_flagged"]) == (value, is_flagged)


# percent or ratio


def test_a_ratio_name_with_percents_is_percents_from_the_first_value_over_one():
    name = "DCGM_FI_DEV_GPU_UTIL_RATIO"
    memory = Memory()

    open_yet = rows([(name, GPU, 0, 1), (name, GPU, 30, 0)], memory)
    decided = rows([(name, GPU, 60, 97), (name, GPU, 90, 1)], memory)
    later = rows([(name, GPU, 120, 1)], memory)

    assert "gpu_samples" not in open_yet
    assert [r["value"] for r in open_yet["gpu_samples_other"] if r["metric"] == name] == [1.0, 0.0]
    assert [r["gpu_busy_ratio"] for r in decided["gpu_samples"]] == [0.97, 0.01]
    assert [r["gpu_busy_ratio"] for r in later["gpu_samples"]] == [0.01]


# recommended counters


def test_the_recommended_counters_are_known_to_us_and_well_formed():
    lines = [x for x in COUNTERS_FILE.read_text().splitlines() if x and not x.startswith("#")]
    fields = [line.split(",")[0].strip() for line in lines]

    assert {line.split(",")[1].strip() for line in lines} == {"gauge", "counter", "label"}
    assert len(set(fields)) == len(fields)
    for field in fields[:-2]:  # the last two are labels
        assert resolve(field).kind != "unknown", field


def test_counters_that_are_off_are_reported_with_the_line_to_add():
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


UUID, OF_AMD = "6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50", "6699c0a8-4200-4242-037f-f97e6cae0f09"
AMD_WHOLE = {
    "gpu_uuid": "88ff", "serial_number": "N/A", "card_model": "N/A",
    "card_series": "AMD Instinct MI210",
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"UUID": "", "gpu_uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"uuid": UUID}, {"gpu_uuid": f"GPU-{UUID}"}),  # the nvidia-smi exporter
        ({"GPU_UUID": OF_AMD}, {"gpu_uuid": OF_AMD}),
        ({"SERIAL_NUMBER": "6922"}, {"gpu_uuid": "SN-6922"}),
        ({"serial_number": "N/A", "gpu_id": "0"}, {"gpu_uuid": None}),
        ({"hostname": "n1", "instance": "10.0.0.1:9400"}, {"node": "n1"}),
        ({"Hostname": "localhost", "instance": "n1:9400"}, {"node": "n1"}),
        ({"Hostname": "exp-x", "pod": "exp-x", "node": "n1"}, {"node": "n1"}),
        ({"instance": "n1:9400"}, {"node": "n1"}),
        ({"instance": "localhost:9400"}, {"node": "given"}),
        ({"model_name": "H100"}, {"gpu_model": "H100"}),
        ({"DCGM_FI_SYSTEM_DRIVER_VERSION": "570"}, {"driver_version": "570"}),
        ({"DCGM_FI_DEV_VBIOS_VERSION": "96.00"}, {"vbios_version": "96.00"}),
        ({"gpu": "x"}, {"gpu_index": None}),
        ({"gpu_partition_id": "0", "gpu_compute_partition_type": "spx"}, {"gpu_instance": ""}),
        ({"gpu_partition_id": "1", "gpu_compute_partition_type": "cpx"}, {"gpu_instance": "1"}),
        ({"pod": "", "namespace": "", "container": ""}, {"pod": None, "container": None}),
        ({"exported_pod": "p", "exported_namespace": "ns", "pod": "exp", "namespace": "mon"},
         {"pod": "ns/p"}),
        ({"pod": "exp", "namespace": "mon", "container": "nvidia-dcgm-exporter"}, {"pod": None}),
        ({"job": "dcgm"}, {"hpc_job": None}),
        ({"UUID": "GPU-\x1b[2J"}, {"gpu_uuid": "GPU-\ufffd[2J"}),
        *(({**AMD_WHOLE, "gpu_compute_partition_type": text, "gpu_partition_id": text},
           {"gpu_uuid": "88ff", "gpu_instance": "", "is_other_partition": False,
            "gpu_model": "AMD Instinct MI210"}) for text in ("none", "N/A", "NA", "", "[N/A]")),
        ({"pod": "p" * 9999}, {"pod": "p" * labels.TEXT_MAX_CHARS}),
    ],
)  # fmt: skip
def test_labels_in_every_spelling(given, expected):
    frame = pl.DataFrame({name: [value] for name, value in given.items()})

    (row,) = labels.normalise(frame, node="given").rows(named=True)

    assert {name: row[name] for name in expected} == expected


def test_where_prometheus_renamed_once_plain_pods_are_the_exporters_in_the_whole_job():
    frame = pl.DataFrame({
        "job": ["dcgm", "dcgm", "other"], "pod": ["exp-1", "exp-2", "train-0"],
        "exported_pod": ["llm-0", None, None],
    })  # fmt: skip

    assert labels.normalise(frame)["pod"].to_list() == ["llm-0", None, "train-0"]
