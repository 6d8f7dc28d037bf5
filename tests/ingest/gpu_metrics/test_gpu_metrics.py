# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""The catalogue of exporters' names, counters to enable, and what is remembered from poll to poll.

What names give: golden cases of dcgm. Remembered are places of GPUs, owners, Xids and layouts of
instances; a poll of a server begins some minutes before the end of the one before it.
"""

from datetime import datetime, timedelta
from typing import get_args

import polars as pl
from tests.tables import gives

from goodput_ingest import gpu_metrics
from goodput_ingest.gpu_metrics import COUNTERS_FILE, Memory, catalogue, missing_counters, resolve
from goodput_ingest.gpu_metrics.catalogue import WIDE, Kind, OnMig
from goodput_queries.catalog import models

START = datetime(2026, 11, 20, 12)
GPU = {"UUID": "GPU-a", "gpu": "0", "Hostname": "n1", "modelName": "H100"}


def rows(lines, memory=None):
    """Return the rows of each raw table that the lines give."""
    sets = [line[1] for line in lines]
    names = sorted({name for one in sets for name in one}) or ["gpu"]
    label_sets = pl.DataFrame(
        {name: [one.get(name) for one in sets] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )
    numbers = pl.Series(range(len(lines)), dtype=pl.UInt32)
    points = pl.DataFrame({
        "series": numbers, "ts": [START + timedelta(seconds=s) for _, _, s, _ in lines],
        "value": pl.Series([float(value) for *_, value in lines], dtype=pl.Float64),
    })  # fmt: skip
    series = pl.DataFrame({"metric": [line[0] for line in lines], "labels": numbers})
    found = gpu_metrics.gpu_rows(
        points, series, gpu_metrics.labels.normalise(label_sets), source="test", memory=memory
    )
    return {parsed.table: parsed.rows.rows(named=True) for parsed in found}


def power(seconds, **more):
    return ("DCGM_FI_DEV_POWER_USAGE", {**GPU, **more}, seconds, 600)


ENTRIES = catalogue.rows("catalogue.csv")


def test_names_are_known_with_the_suffix_of_openmetrics_and_the_prefix_of_a_site():
    energy, of_amd = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "gpu_package_power"
    for name, known in ((f"{energy}_total", energy), ("amd_site_gpu_package_power", of_amd)):
        assert resolve(name) == resolve(known) is not None, name


def test_names_of_gpus_by_an_exporter_that_is_not_read_are_named():
    unread = ["amd_gpu_use_percent", "cluster:gpu_busy:avg", "process.gpu.utilization", "rocm_use"]
    others = [
        *("DCGM_FI_DEV_GPU_UTIL", "amd_site_gpu_package_power", "nvidia_smi_utilization_gpu_ratio"),
        *("kube_pod_info", "slurm_gpus_alloc", "goodput_gpu_seconds_total", "node_cpu_seconds"),
    ]

    assert gpu_metrics.unread_names([*others, *reversed(unread)]) == unread


def test_every_exporter_of_the_catalogue_is_documented_somewhere():
    exporters = {row["exporter"]: row["source"] for row in catalogue.rows("exporters.csv")}
    assert {entry["vendor"] for entry in ENTRIES} == exporters.keys()
    assert all(exporters.values())


test_a_name_that_other_hardware_has_makes_no_page_one_of_gpus = gives(
    gpu_metrics.is_exporters,
    *((name, False) for name in ("hw_power_watts", "hw_fan_speed", "slurm_job_memory_rss")),
)
test_other_exporters_names_are_not_of_gpus = gives(
    resolve,
    *((name, None) for name in ("go_goroutines", "node_load1", "nccl_bus_bw", "up", "")),
)


def test_the_catalogue_describes_columns_that_there_are():
    columns = {
        line.split()[0]
        for line in models.of_layer("raw")["gpu_samples"].sql.splitlines()
        if line.startswith("    ")
    }
    assert set(WIDE) <= columns
    assert set(WIDE) <= {entry["metric"] for entry in ENTRIES}
    assert {entry["kind"] for entry in ENTRIES} <= set(get_args(Kind))
    assert {entry["on_mig"] for entry in ENTRIES} <= set(get_args(OnMig))
    assert len({entry["raw_name"] for entry in ENTRIES}) == len(ENTRIES)


def test_names_of_one_metric_agree_on_what_it_is():
    kinds = {}
    for entry in ENTRIES:
        facts = (entry["kind"], entry["low"], entry["high"], entry["on_mig"])
        kinds.setdefault(entry["metric"], set()).add(facts)

    assert {metric: facts for metric, facts in kinds.items() if len(facts) > 1} == {}


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


def seconds(moment):
    return None if moment is None else (moment - START).total_seconds()


def polls(table, columns, memory, *answers):
    """Return the rows of a table that each answer adds; times are seconds after START."""
    return [
        [
            tuple(seconds(row[c]) if c == "ts" or c.endswith("_at") else row[c] for c in columns)
            for row in rows(lines, memory).get(table, [])
        ]
        for lines in answers
    ]


def over_polls(table, columns, cases):
    """Make the test of a table: answers, and the rows that each adds."""
    return gives(lambda answers: polls(table, columns, Memory(), *answers), cases)


def owner(second, job):
    return power(second, hpc_job=job)


def xid(second, code, **more):
    return ("DCGM_FI_DEV_XID_ERRORS", {**GPU, **more}, second, code)


def cut(second, **profiles):
    """Return readings of instances, as g1="3g.40gb" for GPU instance 1."""
    return [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE",
         {**GPU, "GPU_I_ID": name[1:], "GPU_I_PROFILE": profile}, second, 0.5)
        for name, profile in profiles.items()
    ]  # fmt: skip


def of_node(second, node):
    return [power(second, Hostname=node)]


test_places_over_polls = over_polls("gpus", ("node", "valid_from_at"), {
    "a GPU is reported when it is new or has moved": (
        [of_node(0, "n1"), of_node(1, "n1"), of_node(2, "n2"), of_node(3, "n2")],
        [[("n1", 0)], [], [("n2", 2)], []],
    ),
})  # fmt: skip


READ_AGAIN = [owner(s, "7" if s < 90 else "8") for s in range(0, 300, 30)]
test_owners_over_polls = over_polls("gpu_owners", ("owner", "first_seen_at", "last_seen_at"), {
    "an owner goes on from poll to poll as one stretch": (
        [[owner(0, "7")], [owner(30, "7")], [owner(60, "7")], [owner(90, "8")], [owner(120, "7")]],
        [[("7", 0, 0)], [("7", 0, 30)], [("7", 0, 60)], [("8", 90, 90)], [("7", 120, 120)]]),
    "readings that are read again report the same stretches": (
        [READ_AGAIN[:6], READ_AGAIN[1:8], READ_AGAIN[2:]],
        [[("7", 0, 60), ("8", 90, end)] for end in (150, 210, 270)]),
    "an outage of ours ends a stretch": (
        [[owner(0, "7"), owner(30, "7")], [owner(3600, "7")]],
        [[("7", 0, 30)], [("7", 3600, 3600)]]),
})  # fmt: skip


LATCHED = [xid(0, 0), xid(30, 94), xid(60, 94), xid(90, 31), xid(120, 31)]
MIG = [{"GPU_I_ID": name, "GPU_I_PROFILE": "1g.10gb"} for name in "12"]
test_xids_over_polls = over_polls("gpu_events", ("ts", "code", "ts_precision"), {
    "the latch is remembered from poll to poll": (
        [[xid(0, 0)], [xid(30, 79)], [xid(60, 79)], [xid(90, 0)], [xid(120, 79)]],
        [[], [(30, 79, "approximate")], [], [], [(120, 79, "approximate")]]),
    "readings that are read again make no event of a code that is over": (
        [LATCHED, LATCHED[2:], [*LATCHED[3:], xid(150, 79)]],
        [[(30, 94, "approximate"), (90, 31, "approximate")], [], [(150, 79, "approximate")]]),
    "an Xid in an answer of its own is an event of its time": (
        [[power(s) for s in (0, 30, 60, 90)], [xid(0, 0), xid(30, 0), xid(60, 79), xid(90, 79)]],
        [[], [(60, 79, "approximate")]]),
    "a latch read after later readings of its GPU was not watched before": (
        [[power(s) for s in (0, 30, 60)], [xid(0, 79), xid(30, 79)]],
        [[], [(0, 79, "at_or_before")]]),
    "an Xid on a MIG GPU is one event of the GPU": (
        [[xid(second, code, **one) for one in MIG] for second, code in ((0, 0), (30, 79))],
        [[], [(30, 79, "approximate")]]),
})  # fmt: skip


COLUMNS = ("gpu_instance", "profile", "compute_slices", "valid_from_at", "valid_to_at")
test_layouts_over_polls = over_polls("gpu_instances", COLUMNS, {
    "a layout is reported once": (
        [cut(0, g1="3g.40gb"), cut(30, g1="3g.40gb"),
         [*cut(0, g1="3g.40gb"), *cut(60, g1="3g.40gb")]],
        [[("1", "3g.40gb", 3, 0, None)], [], []]),
    "a GPU that is repartitioned is reported whole": (
        [cut(0, g1="4g.40gb", g2="3g.40gb"), cut(30, g1="4g.40gb", g9="1g.10gb")],
        [[("1", "4g.40gb", 4, 0, None), ("2", "3g.40gb", 3, 0, None)],
         [("1", "4g.40gb", 4, 0, 30), ("2", "3g.40gb", 3, 0, 30),
          ("1", "4g.40gb", 4, 30, None), ("9", "1g.10gb", 1, 30, None)]]),
    "an instance of the same id and another profile is another": (
        [cut(0, g1="3g.40gb"), cut(30, g1="2g.20gb")],
        [[("1", "3g.40gb", 3, 0, None)],
         [("1", "3g.40gb", 3, 0, 30), ("1", "2g.20gb", 2, 30, None)]]),
    "series of the whole GPU by another exporter do not end instances": (
        [[*cut(0, g1="3g.40gb"), power(10), *cut(30, g1="3g.40gb"), power(40)],
         [*cut(60, g1="3g.40gb"), power(70)]],
        [[("1", "3g.40gb", 3, 0, None)], []]),
    "instances have gone when their GPU is read without them over a hole": (
        [[*cut(0, g1="3g.40gb"), *cut(30, g1="3g.40gb")],
         [power(second) for second in range(60, 300, 30)], cut(300, g1="3g.40gb")],
        [[("1", "3g.40gb", 3, 0, None)], [("1", "3g.40gb", 3, 0, 60)],
         [("1", "3g.40gb", 3, 300, None)]]),
    "an outage of ours ends no instance": (
        [cut(0, g1="3g.40gb"), cut(7200, g1="3g.40gb")], [[("1", "3g.40gb", 3, 0, None)], []]),
})  # fmt: skip
