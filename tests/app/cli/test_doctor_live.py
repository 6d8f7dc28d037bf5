"""`goodput doctor`: live sources, what a database holds, and the lines that add more."""

import json
import re
import threading
import tomllib
from collections import defaultdict
from datetime import UTC, datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from tests.app.receivers import pages
from tests.ingest.golden_cases import golden_path
from tests.ingest.job_log_lines import ITERATION

from goodput_app.cli.doctor import doctor, live_sources
from goodput_app.cli.doctor.site_files import site_findings
from goodput_app.settings import settings
from goodput_ingest.gpu_metrics.recommended import COUNTERS_FILE
from goodput_ingest.live import status as live_status
from goodput_ingest.live.config import Collector, collectors
from goodput_ingest.live.status import Status
from goodput_ingest.live.store_lease import collector_lock
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

LABELS = '{gpu="0",UUID="GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50",Hostname="n1"}'


def configure(here, text):
    (here / "goodput.toml").write_text(text)
    settings.cache_clear()


def findings(store=None, *nearby):
    found = defaultdict(list)
    for what, *rest in live_sources.live_findings("goodput.duckdb", store, nearby=nearby):
        found[what].append((rest[0], rest[1], rest[2]))
    return found


@pytest.fixture
def exporter():
    """Give the URL of an exporter that knows one GPU and two counters."""
    text = f"DCGM_FI_DEV_GPU_UTIL{LABELS} 1\nDCGM_FI_PROF_SM_ACTIVE{LABELS} 0.5\n"
    with pages(lambda *_: (text.encode(), "text/plain; version=0.0.4")) as url:
        yield url


def test_a_site_without_settings_gets_the_lines_that_make_them_and_wrong_ones_are_a_problem(here):
    (without,) = findings()["live sources"]
    configure(here, "")
    (empty,) = findings()["live sources"]
    configure(here, '[[collect]]\nsource = "nope"\n')
    ((status, wrong, _),) = findings()["live sources"]

    assert without[:2] == ("missing", "goodput.toml is not there")
    assert without[2].startswith(f"cp {live_sources.EXAMPLE} goodput.toml\n")
    assert empty == ("missing", "goodput.toml names none", f"all there are: {live_sources.EXAMPLE}")
    assert status == "problem"
    assert wrong.startswith("goodput.toml: [[collect]] 1: 'source' is 'nope'")


def test_counters_that_are_off_are_one_line_with_the_file_of_lines_to_add(here, exporter):
    configure(here, f'[[collect]]\nsource = "dcgm"\nurls = ["{exporter}"]\n')

    rows = findings()["live dcgm"]

    assert rows[0] == ("ok", f"{exporter}/metrics: 1 GPUs, 2 metrics", "")
    ((found, then),) = [(found, then) for status, found, then in rows if status == "missing"]
    assert re.match(r"\d+ optional counters are off: ", found)
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in found
    assert re.search(r", \d+ more$", found)
    assert len(found) < 300
    assert "DCGM_FI_PROF_SM_ACTIVE" not in found
    assert str(COUNTERS_FILE) in then


def test_metrics_of_gpus_by_an_exporter_that_is_not_read_are_named(here):
    answers = {"label": ["rocm_utilization_percentage", "up"], "targets": {"activeTargets": []}}

    def answer(path, _):
        part = re.match(r"/api/v1/(\w+)", path)
        data = answers.get(part[1] if part else "", {"resultType": "vector", "result": []})
        return json.dumps({"status": "success", "data": data}).encode(), "application/json"

    with pages(answer) as url:
        configure(here, f'[[collect]]\nsource = "prometheus"\nurl = "{url}"\n')

        rows = findings()["live prometheus"]

    named = "metrics of GPUs by an exporter that is not read: rocm_utilization_percentage"
    assert ("missing", named, live_sources.READ_EXPORTERS) in rows


def test_a_source_that_does_not_answer_is_a_problem_and_stops_no_other(here, exporter):
    configure(
        here,
        '[[collect]]\nsource = "prometheus"\nurl = "http://127.0.0.1:9"\n'
        f'[[collect]]\nsource = "dcgm"\nurls = ["{exporter}"]\n',
    )

    rows = findings()

    ((status, found, then),) = rows["live prometheus"]
    assert (status, then) == ("problem", "fix it there, or in goodput.toml")
    assert found.startswith("http://127.0.0.1:9: no connection")
    assert rows["live dcgm"][0][0] == "ok"


@pytest.mark.usefixtures("all_packages")
def test_metrics_of_an_engine_are_no_problem_and_what_it_lacks_is_missing(here):
    with pages(lambda *_: (b'vllm_num_requests_running{model_name="m"} 3\n', "text/plain")) as url:
        configure(here, f'[[collect]]\nsource = "serving-metrics"\nurls = ["{url}"]\n')

        seen, *lacking = findings()["live serving-metrics"]

    assert seen == ("ok", f"{url}/metrics: 1 metrics of vllm", "")
    assert {status for status, *_ in lacking} == {"missing"}


def test_a_slurmdbd_that_is_down_is_named_with_what_to_start(here):
    said = "sacctmgr: error: Problem talking to the database: Connection refused"
    for name, does in {
        "scontrol": "echo ClusterName = lab",
        "sacctmgr": f"echo {said} >&2; false",
    }.items():
        (here / name).write_text(f"#!/bin/sh\n{does}\n")
        (here / name).chmod(0o755)
    configure(here, f'[[collect]]\nsource = "slurm"\ncluster = "lab"\nfolder = "{here}"\n')

    ((status, found, then),) = findings()["live slurm"]

    assert (status, found) == ("problem", f"slurm: sacctmgr does not reach slurmdbd: {said}")
    assert then.startswith("start it: systemctl status slurmdbd")


def test_a_source_that_hangs_is_named(here, monkeypatch):
    del here
    gate = threading.Event()
    source = SimpleNamespace(name="hanging", origin="a", interval_s=1.0, probe=gate.wait)
    monkeypatch.setattr(live_sources, "configured", lambda: [Collector(source, "hanging")])
    monkeypatch.setattr(live_sources, "PATIENCE_S", 0.1)

    ((status, found, _),) = findings()["live hanging"]
    gate.set()

    assert (status, found) == ("problem", "a did not answer within 0.1 s")


def test_sources_that_nobody_collects_are_a_problem_where_there_is_a_database(here, store):
    (here / "events").mkdir()
    (here / "events" / "note.txt").write_text("hello\n")
    configure(here, '[[collect]]\nsource = "job-events"\nfolder = "events"\n')

    without = findings()
    (before,) = findings(store)["live sources"]
    with collector_lock("goodput.duckdb"):
        (during,) = findings(store)["live sources"]

    assert without["live job-events"][0][:2] == ("missing", "events: 0 of 1 files are job-events.")
    assert [status for status, *_ in without["live sources"]] == ["missing"]
    assert before == (
        "problem",
        "1 source is configured and not collected",
        "goodput serve --db goodput.duckdb, or goodput collect",
    )
    assert during == ("ok", "1 source is collected into goodput.duckdb", "")


def test_a_failing_source_is_reported_and_one_removed_is_to_be_retired(here, store, exporter):
    configure(here, f'[[collect]]\nsource = "dcgm"\nurls = ["{exporter}"]\n')
    now = datetime.now(UTC).replace(tzinfo=None)
    (source,) = collectors(settings().collect)
    for name, origin in (("dcgm", source.origin), ("slurm", "n1")):
        live_status.write(store, [Status(name, origin, now, 30).failed(now, "n1: is away.")])
    unread = f"{live_sources.UNREAD_OF_GPUS}rocm_use"
    live_status.write(store, [Status("otlp", "/v1/metrics", now, 30).answered(now, f"x; {unread}")])

    found = findings(store)

    failing = f"{source.origin} is failing, last success never: n1: is away."
    assert found["collected dcgm"] == [("problem", failing, "see the page Data")]
    assert found["collected otlp"] == [("missing", unread, live_sources.READ_EXPORTERS)]
    ((status, _, then),) = found["collected slurm"]
    assert (status, then) == ("problem", "goodput retire slurm, or configure it again")


@pytest.mark.usefixtures("here")
def test_what_answers_on_this_machine_and_is_not_collected_comes_with_its_lines(exporter):
    rows = findings(
        None,
        {"source": "dcgm", "urls": [exporter]},
        {"source": "prometheus", "url": "http://127.0.0.1:9"},
    )

    assert rows["reachable dcgm"] == [(
        "missing", "dcgm answers on this machine and is not collected",
        f'[[collect]]\nsource = "dcgm"\nurls = ["{exporter}"]',
    )]  # fmt: skip
    assert "reachable prometheus" not in rows


def test_kinds_of_evidence_that_nothing_gives_come_with_the_line_that_adds_them(here, evidence):
    evidence.add("nodes", source="slurm", node="n1")
    (here / "logs").mkdir()
    configure(here, '[[collect]]\nsource = "job-log"\nfolder = "logs"\n')

    found = findings(evidence.store)

    assert set(found) & set(live_sources.KINDS) == {"what GPUs did", "GPU errors"}
    ((status, _, then),) = found["what GPUs did"]
    assert status == "missing"
    assert then.startswith('[[collect]]\nsource = "prometheus"')


def test_allocation_without_a_scheduler_is_called_inferred(evidence):
    begins = [{"event": "job.start", "t": second} for second in (0, 540)]
    evidence.events("r", begins, source="job-events", host="n1")
    evidence.build()

    ((status, found, _),) = findings(evidence.store)[live_sources.ALLOCATION]

    assert status == "missing"
    assert found == "no scheduler; inferred from job events, processes, activity"


def test_the_lines_that_add_a_kind_of_evidence_can_be_pasted():
    lines = "\n".join(then for _, then in live_sources.KINDS.values())

    found = collectors(tomllib.loads(lines)["collect"])

    assert [one.reads for one in found] == ["slurm", "prometheus", "job-events", "kernel-log"]


STEP = ITERATION.format(second=11, step=1, ms=1000.0)


def loaded(store, source, file, text):
    file.write_text(text)
    ingest(store, source, [file], ReadOptions())


def found(store):
    """Return status and finding of each source."""
    return {what: (status, text) for what, status, text, _ in doctor._sources(store, "one.duckdb")}


def test_an_empty_database_is_a_problem_where_nothing_is_polled(store, here):
    assert found(store)["sources"] == ("problem", "nothing was ingested")
    assert list(site_findings("one.duckdb", store)) == []
    configure(here, '[[collect]]\nsource = "slurm"\n')
    assert found(store)["sources"][0] == "missing"


def test_a_log_with_lines_that_almost_matched_is_named_with_the_first_of_them(store, tmp_path):
    text = "successfully saved checkpoint of iteration 7 to /ckpt\n"
    log = tmp_path / "train.out"
    log.write_text(STEP + 2 * text)
    ingest(store, "job-log", [log], ReadOptions(zone=ZoneInfo("UTC")))

    status, said = found(store)["lines job-log"]

    assert status == "rejected"
    assert said.startswith(f"{log}: 2 lines not read; line 2 ({text.strip()}): the line looks")


def test_rejects_and_missing_facts_are_named_with_lines_that_add_them(store, tmp_path):
    loaded(store, "rates", tmp_path / "a.csv", "price_per_gpu_h\ndear\n")
    assert found(store)["rejects rates"] == ("problem", "1 row rejected, none was left")

    loaded(store, "rates", tmp_path / "b.csv", "price_per_gpu_h\n3\n")
    assert found(store)["rejects rates"] == ("rejected", "1 row rejected")
    missing = {what: line for what, _, _, line in site_findings("one.duckdb", store)}
    assert set(missing) == {"electricity prices", "node states"}

    loaded(store, "tariffs", tmp_path / "tariffs.csv", "price_per_kwh\n0.20\n")
    assert [what for what, *_ in site_findings("one.duckdb", store)] == ["node states"]

    pods = golden_path("kubernetes/failed_pytorch_job_without_progress/input.json")
    ingest(store, "kubernetes", [pods], ReadOptions())
    ((*_, line),) = site_findings("one.duckdb", store)
    assert 'source = "kubernetes"' in line


def test_gpu_metrics_of_no_catalogue_are_named_with_the_row_that_adds_one(store, tmp_path):
    series = 'DCGM_FI_DEV_{name}{{UUID="GPU-1",Hostname="n1"}} 5 1787234400000\n'
    loaded(store, "rates", tmp_path / "rates.csv", "price_per_gpu_h\n3\n")
    scrape = "".join(series.format(name=name) for name in ("GPU_UTIL", "ACME_FAN"))
    loaded(store, "dcgm", tmp_path / "scrape.prom", scrape)

    (said,) = (row for row in site_findings("one.duckdb", store) if row[0] == "GPU metrics")

    assert said[2].endswith("no page draws them: DCGM_FI_DEV_ACME_FAN")
    assert said[3].endswith("DCGM_FI_DEV_ACME_FAN,DCGM,gpu_busy_ratio,0.01,gauge,0,1,none")
