"""Every page on the recorded session, in-process: what it shows, filters, windows, links."""

import functools
import json
import tomllib
from pathlib import Path
from urllib.parse import parse_qs

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, links, plain, sent, texts, tile
from tests.tables import each

import goodput_app
from goodput_app import documents
from goodput_app.dashboard.components import charts, scope_bar
from goodput_app.dashboard.components.findings.finding_parts import fix_ids
from goodput_app.dashboard.data import marts
from goodput_app.text import units
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope

PAGES = (
    *("fleet_overview", "fleet_map", "all_runs", "one_run", "node_health", "idle_gaps"),
    *("links_and_bandwidth", "cost_statement", "data_health", "open_findings"),
)
NAMES_AND_PLACES = {"GPU", "Rank", "Xid", "Attempt", "attempt", "First step", "Last step"}
BERLIN = "Europe/Berlin"
MINUTE = {"from": "2026-11-20T12:31:00Z", "to": "2026-11-20T12:32:00Z"}
CHARTS_MAX_BYTES = 1_000_000


@pytest.fixture(scope="module")
def drawn(capture, visit):
    """Give pages of the session, each drawn once: run, where it is of one."""

    @functools.cache
    def page(name):
        return visit(capture, name, **({"run": "lab/main"} if name == "one_run" else {}))

    return page


def assert_can_be_downloaded(app):
    """Hold each chart to having its rows as a table, and each table to being there as Parquet."""
    assert sum(e.label == "Table" for e in app.expander) == len(app.get("plotly_chart"))
    tables = [table for table in app.dataframe if len(table.value)]
    offered = [b for b in app.get("download_button") if b.proto.label == "Parquet"]
    assert len(offered) >= len(tables)  # statements are offered as files, too
    for chart in app.get("plotly_chart"):
        assert "toImage" not in json.loads(chart.proto.config)["modeBarButtonsToRemove"]


def unexplained(app):
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
def test_every_page_draws_the_recorded_session(drawn, page):
    app = drawn(page)
    assert len(app.title) == 2  # the product's and the page's
    drawings = app.get("plotly_chart")
    assert drawings or page == "open_findings"
    assert sum(len(one.proto.spec) for one in drawings) < CHARTS_MAX_BYTES
    assert_can_be_downloaded(app)
    assert unexplained(app) == set()


def test_the_cost_page_lists_tokens_by_account(drawn, capture):
    frames = [frame.value for frame in drawn("cost_statement").dataframe]
    (tokens,) = (frame for frame in frames if "tokens_per_kj" in frame)
    per_j = capture.read("select tokens_per_j, team from marts.tokens_by_account").row(0)
    assert tokens["tokens_per_kj"].to_list() == [pytest.approx(1000 * per_j[0])]
    assert tokens["team"].to_list() == [per_j[1]]


def test_a_run_is_judged_with_evidence_and_says_how_fast_it_is(drawn, capture):
    app = drawn("one_run")
    verdict = app.info[0].value
    assert verdict.startswith("**Attempts of the job failed**"), "its largest finding"
    assert "evidence: 121\\.3 GPU\\-s lost" in verdict
    link = next(one.proto for one in app.get("page_link") if one.proto.label == "Open the finding")
    assert "finding=" in link.query_string
    assert "Restarts: 1" in texts(app)
    run = capture.read("from marts.runs where run_key = 'lab/main'").row(0, named=True)
    assert f"Engine {units.percent(run['nvcre_goodput_ratio'])} (lost " in texts(app)
    expected = {"Step time": "120.0 ms", "Tokens/s": "466.3 k", "MFU": "28.6 %",
                "Goodput by throughput": "44.5 %"}  # fmt: skip
    assert {name: tile(app, name) for name in expected} == expected
    assert "Bound by" not in [tile.label for tile in app.metric]
    assert any("; Bound by " in text.value for text in app.caption)
    assert any("of its best speed" in text.value for text in app.caption)
    counted = "select count(*) from marts.collective_timeline where run_key = 'lab/main'"
    assert f" of {capture.read(counted).item():,} bars, around the longest wait" in texts(app)


def test_the_runs_page_says_of_each_run_what_its_own_page_says(drawn, capture):
    (table,) = (f.value for f in drawn("all_runs").dataframe if "verdict" in f.value)

    rows = pl.from_pandas(table[["run_name", "verdict", "cause"]])
    cause = pl.when(pl.col("cause").is_not_null()).then(pl.format(" ({})", "cause"))
    verdict = pl.col("verdict") + cause.otherwise(pl.lit(""))
    said = dict(rows.select("run_name", verdict).iter_rows())
    runs = capture.read("select run_key, run_name, verdict from marts.runs").rows(named=True)
    assert said == {run["run_name"]: run["verdict"] for run in runs}
    judged, others = ([r for r in runs if (r["verdict"] is None) == is_none] for is_none in (0, 1))
    for run in (judged[0], others[0]):
        rows = capture.read("from marts.run_verdicts", scope=Scope(run=run["run_key"]))
        assert run["verdict"] == (rows["verdict"][0] if rows.height else None)


def test_a_link_reproduces_filter_and_window(capture, visit):
    of_run = visit(capture, "all_runs", run="lab/main", team="research", **MINUTE)
    assert of_run.selectbox(key="scope_run").value == "lab/main"
    (held,) = (f.value["held_gpu_min"] for f in of_run.dataframe if "held_gpu_min" in f.value)
    assert held.tolist() == [4.0]


def test_a_choice_is_written_to_the_link_that_of_a_cluster_alone(capture, visit):
    app = visit(capture, "metric_explorer", run="lab/main", team="research", **MINUTE)
    app.selectbox(key="scope_cluster").select("lab").run()
    assert dict(app.query_params) == {"cluster": "lab"}

    app.selectbox(key="scope_team").select("research").run()
    assert app.query_params["team"] == "research"
    app.button(key="scope_clear").click().run()
    assert "team" not in app.query_params


def test_a_page_without_data_leads_to_the_data_or_offers_to_clear_its_filters(capture, visit):
    app = visit(capture, "metric_explorer", **{"from": "2020-01-01", "to": "2020-01-02"})
    assert "2026-11-20 12:35:02 UTC" in app.info[0].value
    app.button(key="empty_jump").click().run()
    assert app.dataframe

    app = visit(capture, "fleet_overview", team="nobody")
    assert "matches the filters" in app.info[0].value
    assert app.button(key="empty_clear")


@pytest.mark.parametrize("given", [{"from": "bogus"}, {"from": "now", "to": "now-1h"}])
def test_a_window_that_is_none_is_reported_and_the_default_shown(capture, visit, given):
    assert "default" in visit(capture, "metric_explorer", **given).warning[0].value


@pytest.mark.parametrize("names", [("cluster", "team", "node", "run"), ("gap", "least")])
def test_hostile_parameters_are_shown_as_text(capture, visit, names):
    assert "](http" not in texts(visit(capture, "idle_gaps", **dict.fromkeys(names, HOSTILE)))


def test_one_broken_panel_leaves_the_page(capture, visit, monkeypatch):
    def refused(*_of):
        raise QueryError("the database refused the query: no such column")

    monkeypatch.setattr(marts, "ledger_over_time", refused)

    app = visit(capture, is_sound=False)

    assert len(app.error) == 1
    assert "no such column" in app.error[0].value
    assert "gp-bar" in sent(app)


@pytest.mark.parametrize(("asked", "chosen"), [("5m", "5m"), ("<b>", "30s")])
def test_a_page_of_no_run_asks_for_one_as_often_as_the_link_says(capture, visit, asked, chosen):
    app = visit(capture, "one_run", refresh=asked, tz="../../etc/passwd")
    assert "is not a known time zone" in plain(app)
    assert "Choose a run" in app.info[0].value
    assert app.session_state["scope_refresh"] == chosen


def test_a_page_shows_the_zone_and_the_picked_loss_of_the_link(capture, visit):
    app = visit(capture, tz=BERLIN, loss="lab|lab/main|lost_work|own")
    assert "**Evidence:**" in texts(app)
    assert "**What to do:**" in texts(app)
    assert app.selectbox(key="scope_zone").value == BERLIN
    assert app.button(key="scope_zone_toggle").label == f"Times in {BERLIN}"
    layouts = [json.loads(chart.proto.spec)["layout"] for chart in app.get("plotly_chart")]
    assert f"{BERLIN} (UTC+01:00)" in [layout["xaxis"]["title"]["text"] for layout in layouts]


def test_a_wall_has_no_side_bar_and_no_filters_and_is_refreshed(capture, visit, monkeypatch):
    asked = []
    monkeypatch.setattr(scope_bar, "_watch", lambda every, _seen: asked.append(every))
    app = visit(capture, "data_health", view="wall", refresh="off", cluster="lab")
    assert not app.sidebar.children
    assert not app.selectbox
    assert asked == ["30s"]
    assert "cluster lab" in texts(app)
    assert app.button(key="wall").label == "Leave wall view"


def test_the_top_fix_leads_to_its_findings_and_says_what_comes_back(capture, drawn, visit):
    fixes = capture.read("from marts.fixes where back_ms > 0 order by back_ms desc limit 1")
    fix = fix_ids(fixes).item()

    links_ = drawn("fleet_overview").get("page_link")
    opened = [link.proto for link in links_ if link.proto.label == "Open"]

    assert parse_qs(opened[0].query_string)["fix"] == [fix]
    shown = plain(visit(capture, "open_findings", fix=fix))
    assert "of this time range are recoverable, at least" in shown


def test_what_ran_on_a_node_in_a_minute_leads_to_the_run_in_that_minute(capture, visit):
    node = capture.read("select distinct node from marts.gpus").item()

    app = visit(capture, "nodes_and_one", node=node, **MINUTE)

    (run,) = (params for label, params in links(app).items() if " began on 4 of its" in label)
    assert (run["run"], run["from"]) == (["lab/main"], [MINUTE["from"]])


def test_a_day_of_a_node_leads_to_the_node_on_that_day(capture, visit, monkeypatch):
    node = capture.read("select distinct node from marts.gpus").item()
    cell = json.dumps(["lab", node, "2026-11-20"])
    monkeypatch.setattr(charts, "pick", lambda *_: cell)  # as a click on the cell returns it

    opened = links(visit(capture, "node_health", kind="nvlink"))

    assert opened[f"2026-11-20: open node {node}"]["from"][0].startswith("2026-11-20")


ROOT = Path(__file__).parents[4]


def test_pages_of_the_documentation_are_in_menu_and_wheel_and_no_file_is_named_like_a_url():
    """Else a new server's first visit would run that file alone, without filters."""
    pages = {p.relative_to(ROOT) for p in ROOT.glob("docs/**/*.md") if "decisions" not in p.parts}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = {f.stem for f in Path(goodput_app.__file__).with_name("dashboard").glob("pages/*.py")}
    urls = ("overview", "fleet", "runs", "run", "nodes", "gpu", "waste", "cost", "data", "query")

    assert {Path(f"docs/{name}.md") for name in documents.TITLES} == pages
    assert all({f"{page}", f"{page.parent}"} & set(packed) for page in pages)
    assert files.isdisjoint((*urls, "explorer"))


@each(
    ("see [sizing](sizing.md#rest).", "see [sizing](help?doc=operate/sizing#rest)."),
    ("see [decision 53](../decisions/0053-x.md).", "see decision 53."),
    ("[a](../api.md), [above](#b), `[a](api.md)`", "[a](help?doc=api), [above](#b), `[a](api.md)`"),
    ("it costs $2, `$HOME`", r"it costs \$2, `$HOME`"),
    ("```\n$ goodput [a](api.md)\n```", "```\n$ goodput [a](api.md)\n```"),
)
def test_links_lead_to_pages_that_come_with_the_program(tmp_path, monkeypatch, written, shown):
    (tmp_path / "operate").mkdir()
    (tmp_path / "operate/replay.md").write_text(f"# Replay\n{written}", "utf-8")
    monkeypatch.setattr(documents, "_PACKAGED", tmp_path)
    assert documents.text("operate/replay", "help") == shown


def test_it_needs_no_evidence(new_store, visit):
    app = visit(new_store(), "documentation", doc="operate/systemd")
    assert "systemd" in [header.value for header in app.header]
    assert "runuser -u goodput" in texts(app)
