"""Why attempts failed: the parts of the run and health pages, in-process."""

from datetime import timedelta

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, table, texts
from tests.recorded_session import built

from goodput_queries.evidence.batch import Batch

RUN = "lab/main"


@pytest.fixture(scope="module")
def failed(empty_database, tmp_path_factory):
    """Give the recorded session, whose first attempt ends with a message and an Xid."""
    for store in built(
        empty_database, tmp_path_factory, "sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz"
    ):
        attempt = store.read(
            f"select end_at from marts.attempts where run_key = '{RUN}' and attempt = 0"
        )
        end = attempt.item()
        gpu = store.read("select cluster, node, gpu_uuid from marts.gpus order by all limit 1")
        common = {"source": "test", "ts": end - timedelta(seconds=5)}
        event = {"ts_precision": "exact", "kind": "xid", "code": 79, "message": HOSTILE}
        said = {
            "cluster": "lab", "run_id": "main", "attempt": 0, "rank": 0, "event": "failure",
            "kind": "exception", "msg": HOSTILE, "reports_durability": True,
        }  # fmt: skip
        for name, row in (
            ("gpu_events", {**gpu.row(0, named=True), **event, **common}),
            ("job_events", {**said, **common, "ts": end - timedelta(seconds=2)}),
            (
                "job_events",
                {
                    **said, "event": "step", "kind": None, "msg": None, "step": 407,
                    "loss": float("nan"), **common, "ts": end - timedelta(seconds=9),
                    "source": "job-log",
                },
            ),
        ):  # fmt: skip
            store.load(Batch(name, pl.DataFrame(row), row["source"], "test", f"{name}{row['ts']}"))
        store.build()
        yield store


def titles_of(app):
    """Return the titles of the panels, from top to bottom."""
    return [element.value for element in app.subheader]


def test_the_last_attempt_that_failed_is_explained(failed, visit):
    app = visit(failed, "one_run", run=RUN)

    assert "**Attempt 0: Xid 79**" in texts(app)
    causes = table(app, "evidence_against", "cause")
    assert causes["cause"].to_list()[:2] == ["Xid 79", "exception"]
    chain = pl.from_pandas(app.dataframe[-1].value)["what"].to_list()
    assert chain.index("Xid 79") < chain.index("job failure: Exception")
    assert "attempt 1 began" in chain


def test_a_last_attempt_that_failed_is_explained_above_the_ledger(failed, visit):
    begin, end = failed.read(
        f"select start_at, end_at from marts.attempts where run_key = '{RUN}' and attempt = 0"
    ).row(0)
    window = {"from": f"{begin.isoformat()}Z", "to": f"{end.isoformat()}Z"}

    app = visit(failed, "one_run", run=RUN, **window)

    titles = titles_of(app)
    assert titles.index("Why it failed") < titles.index("Ledger")
    assert "Why the attempt failed" not in titles
    assert "Why it failed" not in titles_of(visit(failed, "one_run", run=RUN))


def test_the_link_of_an_attempt_chooses_it(failed, visit):
    app = visit(failed, "one_run", run=RUN, attempt="1")

    assert "Attempt 1 did not end badly" in texts(app)


def test_the_step_of_a_loss_that_is_not_finite_is_named(failed, visit):
    app = visit(failed, "one_run", run=RUN)

    assert "step 407" in texts(app)
    assert "NaN or infinite" in texts(app)


def test_texts_of_a_failure_are_not_markup(failed, visit):
    app = visit(failed, "one_run", run=RUN)

    assert "](http://evil)" not in texts(app)
    assert "<script>" not in texts(app)


def test_a_run_without_failures_says_so(failed, visit):
    begin, end = failed.read(
        f"select start_at, end_at from marts.attempts where run_key = '{RUN}' and attempt = 1"
    ).row(0)
    window = {
        "from": f"{(begin + timedelta(seconds=20)).isoformat()}Z",
        "to": f"{end.isoformat()}Z",
    }

    app = visit(failed, "one_run", run=RUN, **window)

    assert "No attempt ended badly in this time range." in texts(app)


def test_the_health_page_has_the_time_between_failures_by_cause(failed, visit):
    app = visit(failed, "node_health")

    rows = table(app, "mttr_s", "cause").filter(pl.col("cause") == "Xid 79")
    assert rows.height == 1
