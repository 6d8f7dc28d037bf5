"""Logs of MLPerf submissions: runs, and power readings of their nodes."""

import json
from pathlib import Path

import pytest
from tests.tables import each

from goodput_formats_extra.mlperf.training_logs import Mlperf
from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

SYSTEM = {"system_name": "Made-up", "number_of_nodes": "2", "accelerators_per_node": "4"}


def mllog(key, time_ms, **metadata):
    at_ms = 1_700_000_000_000 + time_ms
    event = {"namespace": "", "time_ms": at_ms, "key": key, "value": None, "metadata": metadata}
    return f":::MLLOG {json.dumps(event)}\n"


STOP = mllog("run_stop", 1_160_000, status="success")
BEGUN = "".join(
    mllog(key, 1_000 * second)
    for key, second in {"init_start": 1_000, "run_start": 1_060, "eval_start": 1_080,
                        "eval_stop": 1_085}.items()
)  # fmt: skip
RUN = BEGUN + STOP
RESULTS = "org/results/sys/bert"
LOG = f"{RESULTS}/result_0.txt"
SYSJSON = f":::SYSJSON {json.dumps(SYSTEM)}\n"


def write(folder, text, name=LOG):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_its_gpus_exist_as_long_as_the_run_and_an_aborted_one_is_wasted(whole_store, tmp_path):
    log = SYSJSON + RUN
    aborted = write(tmp_path, log.replace("success", "aborted"), LOG.replace("org", "other"))
    ingest(whole_store, "auto", [write(tmp_path, log), aborted], ReadOptions())
    whole_store.build()

    ledger = "select cluster, category, sum(gpu_ms)::bigint from marts.ledger_scoped"
    assert whole_store.read(f"{ledger} group by all order by all").rows() == [
        ("org", "other_declared", 8 * 5_000), ("org", "startup", 8 * 60_000),
        ("org", "step_unsplit", 8 * 95_000), ("other", "failed_without_progress", 8 * 160_000),
    ]  # fmt: skip


def test_a_run_without_a_stop_ends_with_its_last_line_until_its_log_has_grown(store, read_text):
    read_text("auto", SYSJSON + BEGUN, LOG)
    cut_off = store.read("select state, epoch(end_at) from raw.job_runs").rows()
    read_text("auto", SYSJSON + RUN, LOG)

    # the median distance of its lines after the last
    assert cut_off == [("UNKNOWN", 1_700_000_000 + 1085 + 20)]
    assert store.read("select state from raw.job_runs").rows() == [("COMPLETED",)]
    assert store.read("select count(*) from raw.gpus where valid_to_at is null").item() == 0


@each(
    "",
    ':::SYSJSON {"number_of_nodes": "1000000", "accelerators_per_node": "8"}\n',
    ':::SYSJSON {"number_of_nodes": -1, "accelerators_per_node": "8"}\n',
    ':::SYSJSON {"number_of_nodes": [2], "accelerators_per_node": {}}\n',
    ':::SYSJSON {"number_of_nodes": "\\u00b2", "accelerators_per_node": "8"}\n',
)
def test_without_a_believable_number_of_gpus_the_log_is_refused(read_text, described):
    with pytest.raises(IngestError, match="the number of GPUs is unknown"):
        read_text("mlperf", described + RUN, LOG)


def test_a_second_run_in_one_log_is_a_run_of_its_own(store, read_text):
    again = RUN.replace('"time_ms": 17000', '"time_ms": 17001')

    read_text("auto", SYSJSON + RUN + again, LOG)

    found = store.read("select job_id from raw.job_runs order by all")["job_id"].to_list()
    assert found == ["org/sys/bert/result_0", "org/sys/bert/result_0#2"]


def test_nodes_bear_the_names_of_their_power_readings(store, tmp_path):
    path = write(tmp_path, SYSJSON + RUN)
    for node in ("node_0", "node_1", "sw_0"):
        write(tmp_path, mllog("power_reading", 1), f"{RESULTS}/power/result_0/{node}.txt")

    ingest(store, "mlperf", [path], ReadOptions())

    nodes = store.read("select nodes from raw.job_runs").item().to_list()
    assert nodes == [f"org/sys/bert/result_0/node_{number}" for number in (0, 1)]


def test_a_benchmark_log_of_a_framework_is_a_benchmark_log(tmp_path):
    framework = "[NeMo I 2026-08-20 14:20:21 nemo_logging:393] Rank 0\n" * 3

    path = write(tmp_path, framework + SYSJSON + RUN)

    assert recognise(path) is Mlperf
    assert not JobLog.recognises(path, files.head(path))


def test_what_lies_beside_the_logs_of_a_submission_is_named_and_refuses_nothing(store, tmp_path):
    """A log that does not describe its system has it beside its results."""
    write(tmp_path, RUN)
    write(tmp_path, json.dumps(SYSTEM, indent=1), "org/systems/sys.json")
    write(tmp_path, '{"scaling_factor": 1.0}', f"{RESULTS}/scaling.json")
    write(tmp_path, mllog("power_reading", 1_010_000), f"{RESULTS}/power/result_0/node_0.txt")
    write(tmp_path, "cut before anything was said\n", f"{RESULTS}/result_1.txt")

    summary = ingest(store, "mlperf", [tmp_path], ReadOptions())

    assert summary.files == 1
    assert store.read("select gpus from raw.job_runs").item() == 8
    names = [Path(name).name for name in summary.unrecognised]
    assert names == ["node_0.txt", "scaling.json", "sys.json"]
    (refused,) = summary.refused
    assert "result_1.txt" in refused


NETWORK_MS = 1_652_749_794_206  # years away from the run
ESTIMATE = (
    f':::MLLOG {{"namespace": "", "time_ms": {NETWORK_MS}, "key": "interconnect_power_est", '
    '"value": 59570, "metadata": ""}\n'
)


def test_the_networks_estimate_keeps_its_time_and_is_of_the_run_of_its_folder(store, read_text):
    read_text("auto", ESTIMATE, "ac/results/sys/bert/power/result_0/sw_0.txt")
    read = store.read("select node, epoch_ms(ts), power_w from raw.node_samples")
    assert read.rows() == [("ac/sys/bert/result_0/sw_0", NETWORK_MS, 59570.0)]


def test_outside_a_submission_the_node_has_to_be_given(read_text):
    with pytest.raises(IngestError, match="--node"):
        read_text("node-power", ESTIMATE)
