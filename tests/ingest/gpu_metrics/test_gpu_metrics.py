"""The catalogue of exporters' names, counters to enable; what names give: golden cases of dcgm."""

import csv
from importlib import resources
from typing import get_args

import pytest
from tests.ingest.gpu_lines import GPU, rows

from goodput_ingest.gpu_metrics import (
    COUNTERS_FILE,
    Memory,
    catalogue,
    is_exporters,
    missing_counters,
    resolve,
    unread_names,
)
from goodput_ingest.gpu_metrics.catalogue import WIDE, Kind, OnMig
from goodput_queries.catalog import models


def test_names_are_known_with_the_suffix_of_openmetrics_and_the_prefix_of_a_site():
    energy, of_amd = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "gpu_package_power"
    for name, known in ((f"{energy}_total", energy), ("amd_site_gpu_package_power", of_amd)):
        assert resolve(name) == resolve(known) is not None, name


def test_names_of_gpus_by_an_exporter_that_is_not_read_are_named():
    unread = ["amd_gpu_use_percent", "cluster:gpu_busy:avg", "rocm_utilization_percentage"]
    others = [
        *("DCGM_FI_DEV_GPU_UTIL", "amd_site_gpu_package_power", "nvidia_smi_utilization_gpu_ratio"),
        *("kube_pod_info", "slurm_gpus_alloc", "goodput_gpu_seconds_total", "node_cpu_seconds"),
    ]

    assert unread_names([*others, *reversed(unread)]) == unread


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
