"""Every page on recorded data, on an empty database and on part of the evidence, in-process."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from tests.recorded_session import SAMPLE, built

import goodput_app
from goodput_app.dashboard import theme
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.data import marts
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.scope import Scope
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGES = (
    *("fleet_overview", "fleet_map", "all_runs", "one_run", "node_health", "idle_gaps"),
    *("links_and_bandwidth", "cost_statement", "data_health", "open_findings"),
)
NAMES_AND_PLACES = {"GPU", "Rank", "Xid", "Attempt", "attempt", "First step", "Last step"}
BERLIN = "Europe/Berlin"
HOSTILE = '<script>alert(1)</script> [x](http://evil) "quoted" a/b|c :red[z] $x$'


@pytest.fixture(scope="module")
def capture(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Give the recorded session: NVML, job events, accounting, Inspector logs of one part."""
    parts = "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz", "nccl_inspector/main"
    yield from built(empty_database, tmp_path_factory, *parts)


@pytest.fixture(scope="module")
def telemetry(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give a part of the evidence: telemetry alone, no job, no scheduler, no price."""
    yield from built(empty_database, tmp_path_factory, "nvml.jsonl.gz")


def charts(app: AppTest) -> dict[str, dict[str, object]]:
    """Return the specifications of the charts on a page."""
    found = [element.proto for element in app.get("plotly_chart")]
    return {
        proto.id.split("-")[-1] or str(i): json.loads(proto.spec) for i, proto in enumerate(found)
    }


def texts(app: AppTest) -> str:
    """Return all text of a page that is not in a table or chart."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    shown = [str(element.value) for kind in kinds for element in kind]
    return "\n".join([*shown, *(f"{m.label}: {m.value}" for m in app.metric)])


def assert_sound(app: AppTest) -> None:
    """Hold a page to having no exception and no panel in error."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]


def assert_can_be_downloaded(app: AppTest) -> None:
    """Hold each chart to having its rows as a table, and each table to being there as Parquet."""
    assert sum(e.label == "Table" for e in app.expander) == len(app.get("plotly_chart"))
    tables = [table for table in app.dataframe if len(table.value)]
    offered = [b for b in app.get("download_button") if b.proto.label == "Parquet"]
    assert len(offered) >= len(tables)  # statements are offered as files, too
    for chart in app.get("plotly_chart"):
        removed = json.loads(chart.proto.config)["modeBarButtonsToRemove"]
        assert "toImage" not in removed


def unexplained(app: AppTest) -> set[str]:
    """Return headers of columns with numbers that have no definition as hover text."""
    found = set()
    for table in app.dataframe:
        shown_as = json.loads(table.proto.columns)
        if not set(table.value.columns) <= set(shown_as):  # rows behind a chart, as they are
            continue
        for column in table.value.select_dtypes(["number", "timedelta"]):
            if not shown_as[column].get("help"):
                found.add(shown_as[column]["label"])
    return found - NAMES_AND_PLACES


@pytest.mark.parametrize("page", PAGES)
def test_every_page_draws_the_recorded_session(
    capture: LocalStore, visit: Callable[..., AppTest], page: str
) -> None:
    app = visit(capture, page, run="lab/main")
    assert_sound(app)
    assert len(app.title) == 2  # the product's and the page's
    assert app.get("plotly_chart") or page == "open_findings"
    assert_can_be_downloaded(app)
    assert unexplained(app) == set()


@pytest.mark.parametrize("page", ["fleet_overview", "data_health"])
def test_a_page_shows_the_first_run_on_an_empty_database(
    store: LocalStore, visit: Callable[..., AppTest], page: str
) -> None:
    app = visit(store, page)
    assert_sound(app)
    assert app.code[0].value == "goodput demo"
    assert len(app.code) == 3


def test_rows_without_a_ledger_name_the_next_command(
    store: LocalStore, visit: Callable[..., AppTest]
) -> None:
    job = {"cluster": "lab", "job_id": "1", "submit_at": datetime(2026, 1, 1)}  # noqa: DTZ001 -- UTC
    columns = store.read("select * from raw.job_runs limit 0").columns
    rows = pl.DataFrame([{k: v for k, v in {"source": "slurm", **job}.items() if k in columns}])
    with contextlib.suppress(Exception):
        store.load(Batch("job_runs", rows, "slurm", "sacct", "digest"))
    loaded = store.read("select count(*) as n from state.ingested").item()
    app = visit(store)
    assert_sound(app)
    assert ("goodput build" in texts(app)) == (loaded > 0)


@pytest.fixture
def events_alone(store: LocalStore, tmp_path: Path) -> LocalStore:
    """Give job events that name neither a host nor a GPU, built."""
    event = {"v": 1, "ts": 1_790_000_000, "event": "job.start", "run_id": "run7"}
    path = tmp_path / "job_events.jsonl"
    path.write_text(json.dumps(event) + "\n")
    ingest.ingest(store, "auto", [path], ReadOptions(cluster="lab"))
    store.build()
    return store


def test_rows_that_name_no_gpu_say_what_to_read_in_as_well(
    events_alone: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(events_alone)
    assert_sound(app)
    assert "name no GPU inventory and no job" in app.info[0].value
    assert "goodput build" not in texts(app)


def test_the_data_page_is_there_without_any_gpu(
    events_alone: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(events_alone, "data_health")
    assert_sound(app)
    assert {title.value for title in app.title} == {"Goodput", "Data"}
    assert any("job-events" in frame.value.to_csv() for frame in app.dataframe)


@pytest.fixture(scope="module")
def accounting(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalStore]:
    """Give a part of the evidence: accounting alone, no telemetry, no job event."""
    yield from built(empty_database, tmp_path_factory, "sacct.txt")


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


def test_the_overview_says_what_is_not_measured_and_what_has_no_price(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    shown = texts(visit(capture))
    assert "waits inside steps not measured" in shown
    assert "no price" in shown
    assert "$0" not in shown


def test_the_waterfall_on_the_page_adds_up_to_the_capacity(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    specs = [json.loads(e.proto.spec) for e in visit(capture).get("plotly_chart")]
    traces = specs[0]["data"]
    total = sum(_numbers(trace["x"])[0] for trace in traces if trace["name"] != "Capacity")
    capacity = next(_numbers(trace["x"])[0] for trace in traces if trace["name"] == "Capacity")
    assert total == pytest.approx(capacity)


def _numbers(values: object) -> list[float]:
    assert isinstance(values, list)
    return values


def test_no_page_is_heavier_than_two_megabytes(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    for page in ("fleet_overview", "one_run", "idle_gaps"):
        app = visit(capture, page, run="lab/main")
        specs = sum(len(element.proto.spec) for element in app.get("plotly_chart"))
        assert specs < 1_000_000, page


def test_the_cost_page_lists_tokens_by_account(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "cost_statement")

    frames = [frame.value for frame in app.dataframe]
    (tokens,) = (frame for frame in frames if "tokens_per_kj" in frame)
    per_j = capture.read("select tokens_per_j, team from marts.tokens_by_account").row(0)
    assert tokens["tokens_per_kj"].to_list() == [pytest.approx(1000 * per_j[0])]
    assert tokens["team"].to_list() == [per_j[1]]


def test_a_run_is_judged_in_a_sentence_with_evidence(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "one_run", run="lab/main")
    verdict = app.info[0].value
    assert verdict.startswith("**Attempts of the job failed**"), "its largest finding"
    assert "evidence: 121\\.3 GPU\\-s lost" in verdict
    link = next(one.proto for one in app.get("page_link") if one.proto.label == "Open the finding")
    assert "finding=" in link.query_string
    assert "Restarts: 1" in texts(app)


def test_the_runs_page_says_of_each_run_what_its_own_page_says(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    (table,) = (f.value for f in visit(capture, "all_runs").dataframe if "verdict" in f.value)

    said = dict(zip(table["run_name"], table["verdict"], strict=True))
    expected = {}
    found = 0
    for run_key in capture.read("select run_key from marts.runs")["run_key"]:
        of_run = Scope(run=run_key)
        run = capture.read("from marts.runs", scope=of_run).row(0, named=True)
        rows = capture.read("from marts.run_verdicts", scope=of_run).rows(named=True)
        found += len(rows)
        cause = f" ({rows[0]['cause']})" if rows and rows[0]["cause"] else ""
        expected[run["run_name"]] = rows[0]["title"] + cause if rows else run["verdict"]
    assert said == expected
    assert 0 < found < len(said), "some have no finding"


def test_the_run_page_shows_how_fast_its_steps_are(
    visit: Callable[..., AppTest], capture: LocalStore
) -> None:
    app = visit(capture, "one_run", run="lab/main")

    shown = {tile.label: tile.value.replace("\\", "") for tile in app.metric}
    assert {name: shown[name] for name in ("Step time", "Tokens/s", "MFU", "Bound by")} == {
        "Step time": "120.0 ms",
        "Tokens/s": "466.3 k",
        "MFU": "28.6 %",
        "Bound by": "unknown",
    }
    assert any("of its best speed" in text.value for text in app.caption)


def test_the_run_page_without_a_run_asks_for_one(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "one_run")
    assert_sound(app)
    assert "Choose a run" in app.info[0].value


def test_a_link_reproduces_filter_and_window(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    window = {"from": "2026-11-20T12:31:00Z", "to": "2026-11-20T12:32:00Z"}
    app = visit(capture, "fleet_overview", run="lab/main", **window)
    assert_sound(app)
    assert app.selectbox(key="scope_run").value == "lab/main"
    assert "Capacity: 4.0 GPU\\-min" in texts(app).replace("4\\.0", "4.0")


def test_a_choice_is_written_to_the_link(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture)
    app.selectbox(key="scope_team").select("research").run()
    assert app.query_params["team"] == "research"
    app.button(key="scope_clear").click().run()
    assert "team" not in app.query_params


def test_another_cluster_is_not_asked_for_the_first_ones_runs(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "fleet_overview", run="lab/main", team="research")
    app.selectbox(key="scope_cluster").select("lab").run()
    assert dict(app.query_params) == {"cluster": "lab"}


def test_empty_by_filter_offers_to_clear_the_filters(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "fleet_overview", team="nobody")
    assert_sound(app)
    assert "matches the filters" in app.info[0].value
    app.button(key="empty_clear").click().run()
    assert app.get("plotly_chart")


def test_empty_by_data_offers_to_jump_to_the_last(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "fleet_overview", **{"from": "2020-01-01", "to": "2020-01-02"})
    assert_sound(app)
    assert "2026-11-20 12:35:02 UTC" in app.info[0].value
    app.button(key="empty_jump").click().run()
    assert app.get("plotly_chart")


@pytest.mark.parametrize("given", [{"from": "bogus"}, {"from": "now", "to": "now-1h"}])
def test_a_window_that_is_none_is_reported_and_the_default_shown(
    capture: LocalStore, visit: Callable[..., AppTest], given: dict[str, str]
) -> None:
    app = visit(capture, "fleet_overview", **given)
    assert_sound(app)
    assert "default" in app.warning[0].value
    assert app.get("plotly_chart")


@pytest.mark.parametrize("param", ["cluster", "team", "node", "run", "loss", "gap", "least"])
def test_hostile_parameters_are_shown_as_text(
    capture: LocalStore, visit: Callable[..., AppTest], param: str
) -> None:
    for page in ("fleet_overview", "idle_gaps"):
        app = visit(capture, page, **{param: HOSTILE})
        assert_sound(app)
        assert "](http" not in texts(app)


def test_partial_evidence_is_marked(telemetry: LocalStore, visit: Callable[..., AppTest]) -> None:
    app = visit(telemetry)
    shown = texts(app)
    assert "Capacity" in shown
    assert "no price" in shown


def test_a_picked_loss_shows_cause_and_evidence(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "fleet_overview", loss="lab|lab/main|lost_work|own")
    assert_sound(app)
    assert "**Evidence:**" in texts(app)
    assert "**What to do:**" in texts(app)


def test_a_picked_gap_shows_what_its_gpu_did(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    gap = capture.read("select gap_id from marts.idle_gaps order by gap_s desc limit 1").item()
    before = len(visit(capture, "idle_gaps").get("plotly_chart"))
    app = visit(capture, "idle_gaps", gap=gap)
    assert_sound(app)
    assert len(app.get("plotly_chart")) == before + 1


def test_gaps_that_the_table_leaves_out_are_in_the_sums(
    capture: LocalStore, visit: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = capture.read("select count(*) from marts.idle_gaps").item()
    monkeypatch.setattr(marts, "GAPS_SHOWN", 1)
    monkeypatch.setattr(marts, "GAPS_OF_A_CAUSE", 1)

    app = visit(capture, "idle_gaps")

    assert_sound(app)
    assert f"{gaps} idle gaps, " in texts(app)
    assert " with the highest cost, `goodput gaps` all." in texts(app)
    category, parts = capture.read(
        "select category, count(*) from marts.idle_gap_parts group by 1 order by 2 desc, 1"
    ).row(0)
    shown = texts(visit(capture, "idle_gaps", category=category))
    assert f"{parts} idle gaps, " in shown
    assert "; the table has the 1 with the highest cost" in shown


def test_the_number_of_a_loss_is_the_number_on_its_page(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    losses = capture.read("select * from marts.loss_causes order by gpu_ms desc limit 3")
    for loss in losses.iter_rows(named=True):
        params = {name: loss[name] for name in ("cluster", "category", "blame")}
        run = {"run": loss["run_key"]} if loss["run_key"] else {}

        shown = texts(visit(capture, "idle_gaps", **params, **run))

        assert f"{theme.gpu_time(loss['gpu_ms'])}, " in shown


def test_a_category_that_does_not_exist_is_named(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    shown = texts(visit(capture, "idle_gaps", category="xyz"))

    assert "'xyz' is not a category; all categories are shown." in shown


def test_gpus_that_did_nothing_while_their_job_worked_are_reported(
    capture: LocalStore, visit: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "while their jobs stepped" not in texts(visit(capture, "idle_gaps"))
    found = marts.idle_gaps

    def beside(scope: Scope) -> marts.IdleGaps:
        gaps = found(scope)
        return marts.IdleGaps(gaps.costliest, gaps.sums.with_columns(is_beside_work=True))

    monkeypatch.setattr(marts, "idle_gaps", beside)

    assert "GPUs were idle while their jobs ran steps: " in texts(visit(capture, "idle_gaps"))


def test_one_broken_panel_leaves_the_page(
    store: LocalStore, capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    del store
    with capture.writing() as cursor:
        sql = cursor.execute(
            "select sql from duckdb_views() "
            "where schema_name = 'marts' and view_name = 'ledger_over_time'"
        ).fetchall()[0][0]
        cursor.execute("drop view marts.ledger_over_time")
    st.cache_data.clear()
    try:
        app = visit(capture)
        assert not app.exception
        assert len(app.error) == 1
        assert "marts.ledger_over_time" in app.error[0].value
        assert len(app.get("plotly_chart")) == 1
    finally:
        with capture.writing() as cursor:
            cursor.execute(sql)
        st.cache_data.clear()


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


@pytest.mark.parametrize(
    ("window_ms", "bucket_ms"),
    [
        (1_000, 1_000),
        (332_000, 2_000),
        (3_600_000, 30_000),
        (24 * 3_600_000, 600_000),
        (30 * 86_400_000, 14_400_000 + 7_200_000),
        (400 * 86_400_000, 86_400_000),
    ],
)
def test_a_window_has_as_many_buckets_as_can_be_seen(window_ms: int, bucket_ms: int) -> None:
    assert scope_bar.bucket_ms(window_ms) == bucket_ms


def test_runs_that_are_called_alike_are_offered_with_their_cluster() -> None:
    values = pl.DataFrame(
        [
            ("run", "a/7", "7", "a"),
            ("run", "b/7", "7", "b"),
            ("run", "a/8", "8", "a"),
            ("node", "n1", "n1", "a"),
            ("node", "n1", "n1", "b"),
        ],
        schema=["kind", "value", "label", "cluster"],
        orient="row",
    )
    assert scope_bar.options_of(values, "run") == {"a/7": "7 (a)", "b/7": "7 (b)", "a/8": "8"}
    assert scope_bar.options_of(values, "node") == {"n1": "n1"}


def test_filters_of_a_view_are_those_that_are_set() -> None:
    at = datetime(2026, 1, 1)  # noqa: DTZ001 -- UTC
    view = scope_bar.View(Scope(team="a", from_ms=1), at, at, at, at, "RECORDED")
    assert view.filters == {"team": "a"}
    assert theme.window(*view.window).endswith("UTC")


def test_no_page_file_is_named_like_a_url() -> None:
    """Else a new server's first visit would run that file alone, without filters."""
    urls = {"overview", "fleet", "runs", "run", "nodes", "gpu", "waste", "cost", "data", "explorer"}
    assert urls.isdisjoint(
        file.stem for file in Path(goodput_app.__file__).with_name("dashboard").glob("pages/*.py")
    )


@pytest.mark.parametrize(("asked", "chosen"), [("off", "off"), ("5m", "5m"), ("<b>", "30s")])
def test_how_often_a_page_looks_for_new_data_is_in_the_link(
    capture: LocalStore, visit: Callable[..., AppTest], asked: str, chosen: str
) -> None:
    app = visit(capture, "one_run", run="lab/main", refresh=asked)

    assert_sound(app)
    assert app.session_state["scope_refresh"] == chosen


def test_a_page_shows_the_zone_of_the_link(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, tz=BERLIN)
    assert_sound(app)
    assert app.selectbox(key="scope_zone").value == BERLIN
    assert app.button(key="scope_zone_toggle").label == f"Times in {BERLIN}"
    layouts = [json.loads(chart.proto.spec)["layout"] for chart in app.get("plotly_chart")]
    titles = [layout["xaxis"]["title"]["text"] for layout in layouts]
    assert f"{BERLIN} (UTC+01:00)" in titles


def test_a_zone_that_is_not_known_is_reported(
    capture: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(capture, "data_health", tz="../../etc/passwd")
    assert not app.exception
    assert "is not a time zone that is known here" in app.warning[0].value.replace("\\", "")


def test_a_screen_on_the_wall_has_no_side_bar_and_no_filters_and_is_refreshed(
    capture: LocalStore, visit: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(scope_bar, "_watch", lambda every, _seen: asked.append(every))
    app = visit(capture, "data_health", view="wall", refresh="off", cluster="lab")
    assert_sound(app)
    assert not app.sidebar.children
    assert not app.selectbox
    assert asked == ["30s"]
    assert "cluster lab" in texts(app)
    assert app.button(key="wall").label == "Leave wall view"
