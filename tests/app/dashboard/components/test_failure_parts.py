"""Why attempts failed: the parts of the page of a run, in-process."""

from datetime import timedelta

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, table, texts
from tests.recorded_session import CAPTURED, built

from goodput_queries.evidence.batch import Batch

RUN = "lab/main"


@pytest.fixture(scope="module")
def failed(empty_database, tmp_path_factory):
    """Give the recorded session, whose first attempt ends with a message and an Xid."""
    for store in built(empty_database, tmp_path_factory, *CAPTURED):
        attempt = store.read(
            f"select end_at from marts.attempts where run_key = '{RUN}' and attempt = 0"
        )
        end = attempt.item()
        gpu = store.read("select cluster, node, gpu_uuid from marts.gpus order by all limit 1")
        common = {"source": "test", "ts": end - timedelta(seconds=5)}
        event = {"ts_precision": "exact", "kind": "xid", "code": 79, "message": HOSTILE}
        rank = {"cluster": "lab", "run_id": "main", "attempt": 0, "rank": 0}
        said = {"event": "failure", "kind": "exception", "msg": HOSTILE, "reports_durability": True}
        step = {"event": "step", "step": 407, "loss": float("nan"), "reports_durability": True}
        last_words, last_step = (end - timedelta(seconds=seconds) for seconds in (2, 9))
        for name, row in (
            ("gpu_events", {**gpu.row(0, named=True), **event, **common}),
            ("job_events", {**rank, **said, **common, "ts": last_words}),
            ("job_events", {**rank, **step, "source": "job-log", "ts": last_step}),
        ):
            store.load(Batch(name, pl.DataFrame(row), row["source"], "test", f"{name}{row['ts']}"))
        store.build()
        yield store


@pytest.fixture(scope="module")
def page(failed, visit):
    return visit(failed, "one_run", run=RUN)


def titles_of(app):
    """Return the titles of the panels, from top to bottom."""
    return [element.value for element in app.subheader]


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
    titles = titles_of(visit(failed, "one_run", run=RUN, **of_attempt(failed, 0)))

    assert titles.index("Why it failed") < titles.index("Ledger")
    assert "Why the attempt failed" not in titles
    assert "Why it failed" not in titles_of(page)


def test_attempts_that_did_not_fail_say_so(failed, visit):
    of_one = visit(failed, "one_run", run=RUN, attempt="1")
    of_none = visit(failed, "one_run", run=RUN, **of_attempt(failed, 1, later_s=20))

    assert "Attempt 1 did not end badly" in texts(of_one)
    assert "No attempt ended badly in this time range." in texts(of_none)
