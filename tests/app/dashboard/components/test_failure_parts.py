"""Why attempts failed: the parts of the run and health pages, in-process."""

from datetime import timedelta

import polars as pl
import pytest
from tests.app.opened_page import HOSTILE, table, texts
from tests.queries.conftest import Evidence, steps
from tests.recorded_session import built

from goodput_queries.evidence.batch import Batch

RUN = "lab/main"
TIMES = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T10:00:00Z"}


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


@pytest.fixture(scope="module")
def page(failed, visit):
    """Give the page of the run, drawn once."""
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


def test_the_health_page_has_the_time_between_failures_by_cause(failed, visit):
    app = visit(failed, "node_health")

    rows = table(app, "mttr_s", "cause").filter(pl.col("cause") == "Xid 79")
    assert rows.height == 1


@pytest.fixture(scope="module")
def of_ecc(new_store):
    """Give a run whose GPU has uncorrected ECC errors in the minutes before its end."""
    made = Evidence(new_store(), "e")
    made.load("gpus", [{"cluster": "e", "node": "n7", "gpu_uuid": "GPU-ecc", "gpu_index": 3,
                        "gpu_model": "h100", "valid_from_at": made.at(0)}])  # fmt: skip
    made.job("train", 2_000, 5_000, ["n7"], 1, "FAILED")
    made.events("train", steps(1, 29, 2_000, 100), host="n7")
    made.load("gpu_samples_other", [
        {"gpu_uuid": "GPU-ecc", "gpu_instance": "", "ts": made.at(4_600 + 60 * number),
         "metric": "ecc_uncorrected_volatile_total", "value": float(errors)}
        for number, errors in enumerate((0, 0, 2, 5))
    ])  # fmt: skip
    made.store.build()
    yield made.store
    made.store.close()


def test_a_failed_run_has_the_errors_before_its_end_and_leads_to_their_gpu(of_ecc, visit):
    app = visit(of_ecc, "one_run", run="e/train", **TIMES)

    assert "Failure chain" in texts(app)
    rows = "\n".join(frame.value.to_csv() for frame in app.dataframe)
    assert "5 uncorrected ECC errors on n7 GPU 3" in rows
