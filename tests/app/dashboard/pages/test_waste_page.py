"""The Waste page: gaps of GPUs and of jobs, sums of what its tables leave out, links to it."""

import pytest
from tests.app.opened_page import HOSTILE, page_of, table, texts
from tests.queries.conftest import Evidence

from goodput_app.dashboard.data import marts

page = page_of("capture", "idle_gaps")


def test_a_picked_gap_shows_what_its_gpu_did(capture, visit, page):
    gap = capture.read("select gap_id from marts.idle_gaps order by gap_s desc limit 1").item()
    app = visit(capture, "idle_gaps", gap=gap)
    assert len(app.get("plotly_chart")) == len(page.get("plotly_chart")) + 1


def test_gaps_that_the_table_leaves_out_are_in_the_sums(capture, visit, monkeypatch):
    gaps = capture.read("select count(*) from marts.idle_gaps").item()
    monkeypatch.setattr(marts, "GAPS_SHOWN", 1)

    app = visit(capture, "idle_gaps")

    assert f"{gaps} idle gaps, " in texts(app)
    assert " with the highest cost, `goodput gaps` lists all." in texts(app)
    category, parts = capture.read(
        "select category, count(*) from marts.idle_gap_parts group by 1 order by 2 desc, 1"
    ).row(0)
    shown = texts(visit(capture, "idle_gaps", category=category))
    assert f"{parts} idle gaps, " in shown
    assert "; the table has the 1 with the highest cost" in shown


def test_gpus_idle_while_their_job_worked_are_reported(capture, visit, page, monkeypatch):
    assert "while their jobs ran steps" not in texts(page)
    found = marts.idle_gaps

    def beside(scope):
        gaps = found(scope)
        return marts.IdleGaps(gaps.top_gaps, gaps.sums.with_columns(is_beside_work=True))

    monkeypatch.setattr(marts, "idle_gaps", beside)

    shown = texts(visit(capture, "idle_gaps", category="xyz"))
    assert "GPUs were idle while their jobs ran steps: " in shown
    assert "'xyz' is not a category; all categories are shown." in shown


@pytest.fixture(scope="module")
def regular(made):
    """Give a job of two GPUs with a gap of 40 s in every ten minutes, and one without any.

    In another cluster four GPUs are free, for which two jobs wait.
    """
    free = Evidence(made.store, "free")
    free.node("f", 4, partitions=("p",))
    free.watched(7_200)
    asked = {"submit": 0, "gpus_requested": 4, "partition": "p", "job_name": HOSTILE}
    for job in ("7", "8"):
        free.job(job, None, None, [], 0, "PENDING", **asked)
    gaps = [(start, start + 40) for start in range(600, 7000, 600)]
    for node, gpus, job, name in (("a", 2, "1", HOSTILE), ("b", 1, "2", "busy")):
        made.node(node, gpus)
        made.job(job, 0, 7200, [node], gpus, job_name=name)
        for gpu in range(gpus):
            made.samples(
                f"{node}#{gpu}",
                made.every(-10, 7200),
                lambda s, of=gaps if node == "a" else []: not any(b < s <= e for b, e in of),
            )
    made.store.build()
    return made.store


def test_free_time_with_demand_names_the_jobs_that_waited(regular, visit):
    app = visit(regular, "idle_gaps", category="idle_with_demand", cluster="free")
    assert table(app, "waited_s")["job_id"].to_list() == ["7", "8"]
    assert "2 jobs." in texts(app)


def test_gaps_of_a_job_are_counted_once_for_all_its_gpus_under_its_name(regular, visit):
    app = visit(regular, "idle_gaps", cluster="c")

    shown = texts(app)
    assert "Gaps of jobs" in shown
    assert "11 gaps, " in shown
    assert "22 idle gaps, " in shown  # of single GPUs
    frames = [element.value for element in app.dataframe]
    named = {name for frame in frames if "run_name" in frame for name in frame["run_name"]}
    assert named == {f"{HOSTILE} (1)"}
    assert "11 gaps, " not in texts(visit(regular, "idle_gaps", cluster="c", least="60"))


def test_a_picked_periodic_gap_shows_its_evidence(regular, visit):
    run, coincides = regular.read("select job_run_key, coincides from marts.periodic_gaps").row(0)

    shown = texts(visit(regular, "idle_gaps", cluster="c", periodic=f"{run}|{coincides}"))

    assert (
        r"**Evidence:** every 600 s \(jitter 0 s\) 2 GPUs were idle for up to 50 s, 11 times"
        in shown
    )
