"""Failures, their causes and restarts in a job's log."""

import pytest
from tests.ingest.job_log_lines import parsed

from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

HANG = (
    "[2026-08-20 14:40:52.326] starting run hang attempt 0: world size 4\n"
    "[rank3]:[E820 14:41:09.582826421 ProcessGroupNCCL.cpp:689] [Rank 3] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=45, OpType=ALLREDUCE, NumelIn=3, "
    "Timeout(ms)=14000) ran for 14061 milliseconds before timing out.\n"
)


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (HANG, (ReadOptions(),), "Name their time zone with --timezone"),
        (HANG.partition("\n")[2], (), r"line 1: the stamp 08-20 .* has no year"),
    ],
    ids=["no zone", "no year"],
)
def test_a_watchdogs_log_without_its_zone_or_year_is_refused(store, tmp_path, text, options, why):
    with pytest.raises(IngestError, match=why):
        parsed(store, tmp_path, text, *options)
