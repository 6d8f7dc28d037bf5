"""The failure class of a job from its log alone: 360 logs with one injected failure each.

The rules were written on the logs with an odd number. The logs of a class differ in little but
numbers: that the other half is right says that every log is read, not that any program is known.
"""

import json
from datetime import datetime

import polars as pl
import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.failure_kinds import KINDS
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_queries.errors import IngestError

FOLDER = EXTERNAL / "gpualert-injected"
pytestmark = reading(FOLDER)
KIND_OF_MODE = {"ram_oom": "host_memory", "missing_module": "missing_module",
                "div_zero": "division_by_zero", "nan_loss": "nan", "traceback": "exception",
                "cuda_runtime": "cuda_error"}  # fmt: skip
READ_OUT = ReadOptions(observed_at=datetime(2026, 11, 20, 12))  # noqa: DTZ001 -- naive, UTC


def failure_kind(log):
    """Return the kind that the cause of an attempt gets from this log: the most specific one."""
    try:
        rows = pl.concat([batch.rows for batch in JobLog(log, READ_OUT).extract()])
    except IngestError:
        return None
    kinds = rows.filter(pl.col("event") == "failure")["kind"].to_list()
    return min(kinds, key=KINDS.index, default=None)


@pytest.mark.parametrize("half", [0, 1], ids=["held out", "tuned on"])
def test_the_class_of_a_failure_is_that_of_its_log(half):
    labels = [json.loads(line) for line in (FOLDER / "labels.jsonl").read_text().splitlines()]
    chosen = [label for label in labels if int(label["id"][-4:]) % 2 == half]
    assert len(chosen) == 180

    wrong = [
        (label["id"], found)
        for label in chosen
        if (found := failure_kind(FOLDER / label["log"]))
        != KIND_OF_MODE.get(label["mode"], label["mode"])
    ]

    assert wrong == []
