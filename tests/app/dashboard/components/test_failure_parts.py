"""Why attempts failed: the parts of the run and health pages, in-process."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.recorded_session import built

from goodput_queries.evidence.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

    from goodput_queries.storage.store import LocalStore

HOSTILE = "<script>alert(1)</script> [x](http://evil) $x$"
RUN = "lab/main"


@pytest.fixture(scope="module")
def failed(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
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
        for table, row in (
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
            store.load(
                Batch(table, pl.DataFrame(row), row["source"], "test", f"{table}{row['ts']}")
            )
        store.build()
        yield store


def texts(app: AppTest) -> str:
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def titles_of(app: AppTest) -> list[str]:
    """Return the titles of the panels, from top to bottom."""
    return [element.value for element in app.subheader]


def table(app: AppTest, column: str) -> pl.DataFrame:
    """Return the table of causes that has this column."""
    frames = [pl.from_pandas(frame.value) for frame in app.dataframe]
    return next(frame for frame in frames if {column, "cause"} <= set(frame.columns))


def test_the_last_attempt_that_failed_is_explained(
    failed: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(failed, "one_run", run=RUN)

    assert not app.exception
    assert not app.error
    assert "**Attempt 0: Xid 79**" in texts(app)
    causes = table(app, "evidence_against")
    assert causes["cause"].to_list()[:2] == ["Xid 79", "exception"]
    chain = pl.from_pandas(app.dataframe[-1].value)["what"].to_list()
    assert chain.index("Xid 79") < chain.index("job failure: Exception")
    assert "attempt 1 began" in chain


def test_a_last_attempt_that_failed_is_explained_above_the_ledger(
    failed: LocalStore, visit: Callable[..., AppTest]
) -> None:
    begin, end = failed.read(
        f"select start_at, end_at from marts.attempts where run_key = '{RUN}' and attempt = 0"
    ).row(0)
    window = {"from": f"{begin.isoformat()}Z", "to": f"{end.isoformat()}Z"}

    app = visit(failed, "one_run", run=RUN, **window)

    assert not app.exception
    assert not app.error
    titles = titles_of(app)
    assert titles.index("Why it failed") < titles.index("Ledger")
    assert "Why the attempt failed" not in titles
    assert "Why it failed" not in titles_of(visit(failed, "one_run", run=RUN))


def test_the_link_of_an_attempt_chooses_it(
    failed: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(failed, "one_run", run=RUN, attempt="1")

    assert not app.exception
    assert "Attempt 1 did not end badly" in texts(app)


def test_the_step_of_a_loss_that_is_not_finite_is_named(
    failed: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(failed, "one_run", run=RUN)

    assert "step 407" in texts(app)
    assert "NaN or infinite" in texts(app)


def test_texts_of_a_failure_are_not_markup(
    failed: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(failed, "one_run", run=RUN)

    assert "](http://evil)" not in texts(app)
    assert "<script>" not in texts(app)


def test_a_run_without_failures_says_so(failed: LocalStore, visit: Callable[..., AppTest]) -> None:
    begin, end = failed.read(
        f"select start_at, end_at from marts.attempts where run_key = '{RUN}' and attempt = 1"
    ).row(0)
    window = {
        "from": f"{(begin + timedelta(seconds=20)).isoformat()}Z",
        "to": f"{end.isoformat()}Z",
    }

    app = visit(failed, "one_run", run=RUN, **window)

    assert not app.exception
    assert "No attempt ended badly in this time range." in texts(app)


def test_the_health_page_has_the_time_between_failures_by_cause(
    failed: LocalStore, visit: Callable[..., AppTest]
) -> None:
    app = visit(failed, "node_health")

    assert not app.exception
    assert not app.error
    rows = table(app, "mttr_s").filter(pl.col("cause") == "Xid 79")
    assert rows.height == 1
