"""Pages on an empty database and on part of the evidence, in-process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.app.opened_page import assert_sound, texts
from tests.recorded_session import SAMPLE, built

from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.evidence.batch import Batch, Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlit.testing.v1 import AppTest

    from goodput_queries.storage.store import LocalStore

HOSTILE = '<script>alert(1)</script> [x](http://evil) "quoted" a/b|c :red[z] $x$'


@pytest.fixture(scope="module")
def telemetry(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give a part of the evidence: telemetry alone, no job, no scheduler, no price."""
    yield from built(empty_database, tmp_path_factory, "nvml.jsonl.gz")


@pytest.fixture(scope="module")
def accounting(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give a part of the evidence: accounting alone, no telemetry, no job event."""
    yield from built(empty_database, tmp_path_factory, "sacct.txt")


@pytest.fixture
def events_alone(store: LocalStore, tmp_path: Path) -> LocalStore:
    """Give job events that name neither a host nor a GPU, built."""
    event = {"v": 1, "ts": 1_790_000_000, "event": "job.start", "run_id": "run7"}
    path = tmp_path / "job_events.jsonl"
    path.write_text(json.dumps(event) + "\n")
    ingest.ingest(store, "auto", [path], ReadOptions(cluster="lab"))
    store.build()
    return store


@pytest.mark.parametrize("page", ["fleet_overview", "data_health"])
def test_a_page_shows_the_first_run_on_an_empty_database(
    store: LocalStore, visit: Callable[..., AppTest], page: str
) -> None:
    app = visit(store, page)
    assert_sound(app)
    assert app.code[0].value == "goodput demo"
    assert len(app.code) == 3


def test_rows_without_a_ledger_say_that_it_is_being_built(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    node = pl.DataFrame({"cluster": ["lab"], "node": ["n1"], "source": ["csv"]})
    store.load(Batch("nodes", node, "csv", "nodes.csv", "digest"))
    app = visit(store)
    assert_sound(app)
    assert "is being built" in app.info[0].value


def test_rows_that_name_no_gpu_say_what_to_read_in_as_well(
    events_alone: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(events_alone)
    assert_sound(app)
    assert "contain neither a GPU inventory nor a job" in app.info[0].value
    assert "goodput build" not in texts(app)


def test_the_data_page_is_there_without_any_gpu(
    events_alone: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(events_alone, "data_health")
    assert_sound(app)
    assert {title.value for title in app.title} == {"Goodput", "Data"}
    assert any("job-events" in frame.value.to_csv() for frame in app.dataframe)


def test_without_telemetry_gaps_are_not_known(
    accounting: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(accounting, "idle_gaps")
    assert_sound(app)
    assert app.info[0].value == "No telemetry in this window: gaps are not known."


def test_without_job_events_lateness_and_goodput_of_a_run_are_not_known(
    accounting: LocalStore, visit: Callable[..., AppTest]
) -> None:
    run = accounting.read("select run_key from marts.runs limit 1").item()
    app = visit(accounting, "one_run", run=run)
    assert_sound(app)
    assert "Stragglers are not known" in texts(app)
    assert "Goodput (% of allocated): not measured" in texts(app)


@pytest.mark.parametrize(("by", "name"), [("", "research"), ("size", "2 to 8 GPUs")])
def test_the_runs_page_says_who_waited(
    accounting: LocalStore, visit: Callable[..., AppTest], by: str, name: str
) -> None:
    app = visit(accounting, "all_runs", waits=by)
    assert_sound(app)
    waits = app.dataframe[-1].value
    assert name in waits["name"].to_list()
    assert waits["started"].sum() > 0


def test_partial_evidence_is_marked(telemetry: LocalStore, visit: Callable[..., AppTest]) -> None:
    app = visit(telemetry)
    shown = texts(app)
    assert "Capacity" in shown
    assert "no price" in shown


def test_rejected_rows_are_listed_with_their_reason(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    ingest.ingest(store, "auto", [SAMPLE / "sacct.txt"], ReadOptions(cluster="lab"))
    empty = store.read("select * from raw.job_events limit 0")
    rejects = [Reject(line=7, reason="not JSON", content=HOSTILE)]
    store.load(Batch("job_events", empty, "job-events", "x.jsonl", "digest", rejects=rejects))
    store.build()
    app = visit(store, "data_health")
    assert_sound(app)
    frames = [frame.value for frame in app.dataframe]
    assert any("not JSON" in frame.to_csv() for frame in frames)
