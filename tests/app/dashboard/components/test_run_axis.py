"""The page of a run: its time axis, the run before it, filters of runs, why attempts failed."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, page_of, sent, table, texts
from tests.queries.conftest import Evidence, steps
from tests.recorded_session import CAPTURED, built, extent_ms
from tests.tables import each, gives

from goodput_app.dashboard.components.runs import run_axis as components
from goodput_app.dashboard.components.runs import run_before, run_filters
from goodput_app.dashboard.data import metrics, run_axis, speed
from goodput_app.dashboard.figures import runs
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.process.store import use_store
from goodput_queries.scope import Scope

START = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- UTC, as the database has it
RUN = "lab/main"


@pytest.fixture
def scope(capture):
    use_store(capture)
    from_ms, to_ms = extent_ms(capture)
    return Scope(from_ms=from_ms, to_ms=to_ms, run=RUN)


def test_telemetry_is_of_the_runs_gpus_or_rolled_up_of_a_long_window(capture, scope):
    found = run_axis.telemetry(scope, metrics.Resolution(1000, is_raw=True))
    rolled_up = run_axis.telemetry(scope, metrics.Resolution(600_000, is_raw=False))

    sql = "select min(start_at), max(end_at) from marts.gpu_allocations where run_key = $1"
    first, last = capture.read(sql, [RUN]).row(0)
    assert found["gpus"].max() == run_axis.allocated(scope)["gpus"].item() == 4
    assert found["at"].min() >= first - timedelta(seconds=1)
    assert found["at"].max() < last
    # a bucket that began before the run is not its own
    sql = "select avg(power_w.mean) from intermediate.int_gpu_metrics group by start_ms"
    expected = capture.read(f"{sql} order by start_ms desc limit 1").item()
    assert rolled_up.select("gpus", "power_w").rows() == [(4, pytest.approx(expected))]


@pytest.fixture(scope="module")
def world(made):
    """Give an hour of runs: one that says nothing, five of two workloads, three of two users."""
    for node, gpus in (("a", 1), ("b", 2), ("d", 2), ("e", 3)):
        made.node(node, gpus)
    made.job("silent", 100, 200, ["a"], 1, submit=40)
    made.job("bad", 500, 600, ["b"], 2, "FAILED", job_name="llm")
    for job, start, gpus in [("1", 0, 2), ("2", 200, 2), ("3", 400, 1), ("4", 600, 2)]:
        made.job(job, start, start + 100, ["b"], gpus, job_name="llm")
        made.events(job, steps(1, 9, start, 5.0), host="b")
    made.job("5", 100, 150, ["d"], 2, job_name="other")
    users = [("dora", "COMPLETED"), ("bob", "FAILED"), ("bob", "COMPLETED")]
    for job, (user, state) in zip("678", users, strict=True):
        made.job(job, 0, 600, ["e"], 1, state, user_name=user)
        made.events(job, steps(1, 9, 60), host="e")
    made.watched(3_600)
    made.store.build()
    return made.store


def run_key(store, job):
    return store.read("select run_key from marts.runs where run_id = $1", [job]).item()


def test_a_run_waits_from_when_it_could_start_until_it_starts(used):
    waits = run_axis.waits(Scope(from_ms=0, to_ms=2**52, run=run_key(used, "silent")))
    assert waits["wait_s"].to_list() == [60.0]
    assert waits["end_at"][0] - waits["start_at"][0] == timedelta(seconds=60)


def test_ranks_are_as_late_as_stragglers_and_as_active_as_readings_say(capture, scope):
    found, metric = run_axis.activity(scope, 4)
    late = run_axis.lateness(scope)

    named = capture.read("from marts.stragglers where run_key = $1", [RUN])
    worst = late.group_by("rank").agg(pl.col("late_s").sum()).sort("late_s")["rank"][-1]
    assert worst == named.sort("imposed_wait_gpu_s")["rank"][-1]
    mean = capture.read(
        """select avg(samples.sm_active_ratio) from staging.stg_gpu_samples as samples
        inner join intermediate.int_rank_gpus as ranks using (gpu_uuid)
        inner join marts.gpu_allocations as held using (gpu_uuid)
        where ranks.rank = 2 and held.run_key = $1 and ts >= start_at and ts < end_at""",
        [RUN],
    ).item()
    assert metric == "sm_active_ratio"
    assert found["rank"].unique().to_list() == [0, 1, 2, 3]
    assert found.filter(pl.col("rank") == 2)[metric].mean() == pytest.approx(mean, rel=0.05)


def test_ranks_are_drawn_over_the_time_of_their_run_and_no_longer(scope, monkeypatch):
    drawn, day = [], timedelta(days=1)
    monkeypatch.setattr(components.charts, "draw", lambda figure, *_: drawn.append(figure))
    monkeypatch.setattr(components.scope_bar, "choice", lambda *_, **__: None)
    held = run_axis.allocated(scope).row(0, named=True)
    components.ranks(SimpleNamespace(scope=scope, window=(START - day, START + day)))
    (figure,) = drawn
    assert figure.layout.xaxis.range == (held["start_at"], held["end_at"])
    assert len(figure.data[0].x) == 50  # of 2 s each


def test_gpus_without_a_rank_are_called_by_their_node():
    cell = {"rank": None, "node": "<b>a", "at": START, "gpu_busy_ratio": 0.5}
    gpus = [("GPU-0123456789-a", 0), ("GPU-0123456789-b", 1), ("GPU-0123456789-c", None)]
    cells = [{**cell, "gpu_uuid": uuid, "gpu_index": index} for uuid, index in gpus]
    frame = pl.DataFrame(cells, schema_overrides={"rank": pl.Int64})
    drawn = runs.activity(frame, "gpu_busy_ratio", "GPU utilisation", (START, START)).data[0]
    assert drawn.y == ("&lt;b&gt;a GPU 0", "&lt;b&gt;a GPU 1", "&lt;b&gt;a GPU-0123456789-c")
    assert drawn.z.tolist() == [[50.0]] * 3


def rows(*cells):
    """Give marts.rank_lateness: rank, minute, share."""
    named = [(rank, START + timedelta(minutes=minute), share) for rank, minute, share in cells]
    return pl.DataFrame(named, schema=["rank", "bucket_at", "late_ratio"], orient="row")


def test_a_cell_without_steps_is_empty_one_of_two_attempts_is_of_the_later_one_and_the_last_lasts():
    found = rows((0, 0, 0.0), (1, 0, 0.1), (1, 0, 0.5), (1, 1, 0.25))
    drawn = runs.lateness(found, (START, START)).data[0]
    alone = runs.lateness(rows((0, 0, 0.5)), (START, START + timedelta(minutes=5))).data[0]

    assert drawn.y == ("rank 0", "rank 1")
    assert np.array_equal(drawn.z, [[0, np.nan], [50, 25]], equal_nan=True)
    assert [alone.x[1] - alone.x[0], len(alone.x)] == [300_000, 2]


def test_the_axis_is_the_time_of_the_run_and_its_line_of_steps_breaks_between_attempts():
    hours = [START + timedelta(hours=h) for h in range(6)]
    frame = pl.DataFrame({"start_at": [hours[1], hours[2]], "end_at": [hours[2], hours[4]]})
    steps = pl.DataFrame({
        "attempt": [0, 0, 1], "end_at": [START + timedelta(seconds=s) for s in (1, 2, 9)],
        "step_s": [1.0, 1.0, 2.0], "median_step_s": [1.0, 1.0, 2.0],
    })  # fmt: skip

    assert components.extent((hours[0], hours[5]), frame) == (hours[1], hours[4])
    assert components.extent((hours[2], hours[3]), frame) == (hours[2], hours[3])
    assert components.extent((hours[0], hours[5]), frame.clear()) == (hours[0], hours[5])
    assert components.steps_in_order(steps)["step_s"].to_list() == [1.0, 1.0, None, 2.0]


@each(
    ({}, ("No job events received", "No readings of its 1 GPU")),
    ({"_shares": None, "_lanes": figures.Lanes([])}, ("When it did what is not known",)),
)
def test_a_run_that_says_nothing_has_a_page(visit, world, monkeypatch, known, said):
    for name, value in known.items():  # of old times sums of hours are kept alone
        monkeypatch.setattr(components, name, lambda *_, value=value: value)
    app = visit(world, "one_run", run=run_key(world, "silent"))

    captions = " ".join(str(c.value) for c in app.caption)
    assert all(text in captions for text in said)
    assert "How late each rank was is not known" in captions
    assert "100.0 % unclassified" in sent(app).replace("\\", "")
    assert "all time is classified" not in sent(app)


@pytest.mark.parametrize(
    ("job", "before"), [("4", "2"), ("2", "1"), ("1", None), ("3", None), ("5", None)],
    ids=["the latest good one of its size", "the first", "none before", "other size", "other name"],
)  # fmt: skip
def test_the_last_good_run_is_of_the_same_workload_and_size(used, job, before):
    found = speed.run_before(Scope(run=run_key(used, job)))
    assert found == (None if before is None else (run_key(used, before), True))


test_the_verdict_is_about_the_speed_of_steps = gives(
    run_before.verdict,
    (1.0, 1.2, "20.0 % faster"), (1.25, 1.0, "20.0 % slower"), (1.0, 1.005, "Same speed"),
    (None, 1.0, "Which is faster is not known: no steps"),
)  # fmt: skip


def test_the_page_of_a_run_has_both_runs_side_by_side(world, visit):
    app = visit(world, "one_run", run=run_key(world, "4"))

    (table,) = (html.proto.body for html in app.get("html") if '"gp-before"' in html.proto.body)
    assert "<th>this run</th><th>llm (2)</th>" in table
    assert "<td>Median step</td><td>5 s</td><td>5 s</td>" in table


def shown(app):
    (frame,) = (f.value for f in app.dataframe if "run_name" in f.value and "state" in f.value)
    return sorted(frame["run_name"])


def options(app, param):
    return app.selectbox(key=f"scope_{param}").options


def test_users_and_states_are_offered_and_own_runs_by_one_click(world, visit, monkeypatch):
    monkeypatch.setattr(run_filters, "current_identity", lambda: SimpleNamespace(name="dora"))
    app = visit(world, "all_runs")

    assert {"All users", "bob (2)", "dora (1)"} <= set(options(app, "user"))
    assert set(options(app, "run_state")) == {"All states", "COMPLETED (8)", "FAILED (2)"}
    assert len(shown(app)) == 10
    app = app.button(key="my_runs").click().run()
    assert app.query_params["user"] == "dora"
    assert len(shown(app)) == 1
    assert not any(button.key == "my_runs" for button in app.button)


@each(({"user": "bob"}, 2), ({"user": "bob", "run_state": "FAILED"}, 1))
def test_filters_of_the_link_leave_the_runs_that_they_name(world, visit, filters, number):
    assert len(shown(visit(world, "all_runs", **filters))) == number


@pytest.fixture(scope="module")
def failed(filled, module_store):
    """Give the recorded session, whose first attempt ends with a message and an Xid."""
    store = module_store(copy_of=built(filled, *CAPTURED))
    sql = f"select end_at from marts.attempts where run_key = '{RUN}' and attempt = 0"
    end = store.read(sql).item()
    node, gpu = store.read("select node, gpu_uuid from marts.gpus order by all limit 1").row(0)
    session = Evidence(store, "lab")
    end_s = (end - Evidence.at(0)).total_seconds()
    session.xid(node, 79, end_s - 5, "test", gpu_uuid=gpu, message=HOSTILE)
    failure = {"event": "failure", "kind": "exception", "msg": HOSTILE, "t": end_s - 2}
    session.events("main", [failure], host=None)
    last_step = {"event": "step", "step": 407, "loss": float("nan"), "t": end_s - 9}
    session.events("main", [last_step], source="job-log", host=None)
    store.build()
    return store


page = page_of("failed", "one_run", run=RUN, ranks="active")


def of_attempt(store, attempt, *, later_s=0):
    """Return the window of an attempt, from so many seconds after its start."""
    times = f"select start_at, end_at from marts.attempts where run_key = '{RUN}' and attempt = $1"
    begin, end = store.read(times, [attempt]).row(0)
    return {
        "from": f"{(begin + timedelta(seconds=later_s)).isoformat()}Z",
        "to": f"{end.isoformat()}Z",
    }


def test_the_last_attempt_that_failed_is_explained_as_text(page):
    shown = texts(page)
    assert "rank-activity" in sent(page), "the link asks for the GPUs of ranks"
    assert "**Attempt 0: Xid 79**" in shown
    assert "step 407" in shown
    assert "NaN or infinite" in shown
    assert "](http://evil)" not in shown
    assert "<script>" not in shown
    causes = table(page, "evidence_against", "cause")
    assert causes["cause"].to_list()[:2] == ["Xid 79", "exception"]
    chain = pl.from_pandas(page.dataframe[-1].value)["what"].to_list()
    assert chain.index("Xid 79") < chain.index("job failure: Exception")
    assert "attempt 1 began" in chain


def test_a_last_attempt_that_failed_is_explained_above_the_ledger(failed, visit, page):
    of_it = visit(failed, "one_run", run=RUN, **of_attempt(failed, 0))
    titles, of_both = ([title.value for title in app.subheader] for app in (of_it, page))

    assert titles.index("Why it failed") < titles.index("Ledger")
    assert "Why the attempt failed" not in titles
    assert "Why it failed" not in of_both


def test_attempts_that_did_not_fail_say_so(failed, visit):
    of_one = visit(failed, "one_run", run=RUN, attempt="1")
    of_none = visit(failed, "one_run", run=RUN, **of_attempt(failed, 1, later_s=20))
    assert "Attempt 1 did not fail" in texts(of_one)
    assert "Why the attempt failed" not in texts(of_none)
