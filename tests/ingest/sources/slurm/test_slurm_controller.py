"""A cluster without accounting: its job runs are those that the controller lists."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

JOB = (
    "JobId={job} JobName=train UserId=ann(1001) GroupId=users(100) Account=(null) JobState={state}"
    " Reason=None Dependency=(null) SubmitTime=2026-11-27T09:00:00 StartTime=2026-11-27T09:30:00"
    " EndTime={end} Partition=gpu ReqNodeList=(null) NodeList=gn01 NumNodes=1 CoreSpec=*"
    " JOB_GRES=gpu:2 Nodes=gn01 CPU_IDs=0-15 Mem=65536 GRES=gpu:2(IDX:{gpus})\n"
)
TOMORROW = "2026-11-28T09:30:00"  # when the time limit ends what runs
UTC_ZONE = ZoneInfo("UTC")


def job(number, state, end=TOMORROW, gpus="0-1"):
    return JOB.format(job=number, state=state, end=end, gpus=gpus)


def test_job_runs_of_listings_end_when_they_say_or_with_their_last_listing(whole_store, tmp_path):
    """Half past nine to 11:50; to noon, the last listing with it before one of 14:00; until now."""
    ended, gone = job(1, "COMPLETED", "2026-11-27T11:50:00"), job(2, "RUNNING", gpus="2-3")
    runs = job(3, "RUNNING").replace("StartTime=2026-11-27T09:30", "StartTime=2026-11-27T12:15")
    listings = {11: job(1, "RUNNING") + gone, 12: ended + gone, 14: runs}
    for hour, text in listings.items():
        path = tmp_path / f"{hour}.txt"
        path.write_text(text)
        at = datetime(2026, 11, 27, hour, tzinfo=UTC).replace(tzinfo=None)
        ingest(whole_store, "auto", [path], ReadOptions("lab", UTC_ZONE, observed_at=at))
    whole_store.build()

    found = whole_store.read(
        "select run_id, state, gpus, user_name, is_running, held_ms / 60000 "
        "from marts.runs order by run_id"
    )
    assert found.rows() == [
        ("1", "COMPLETED", 2, "ann", False, 140 * 2),
        ("2", "RUNNING", 2, "ann", False, 150 * 2),
        ("3", "RUNNING", 2, "ann", True, 105 * 2),
    ]


SACCT = (
    "Cluster|JobIDRaw|State|Submit|Start|End|Suspended|NodeList|AllocTRES\n"
    "lab|1|{state}|2026-11-27T09:00:00|2026-11-27T09:30:00|{end}|00:01:00|gn01|gres/gpu=2\n"
)


@pytest.mark.parametrize("is_first", [True, False])
@each(("COMPLETED", "2026-11-27T11:50:00", 60), ("RUNNING", "Unknown", None))
def test_accounting_knows_more_of_ended_runs(store, read_text, is_first, state, end, suspended_s):
    """However late the listing is; of one that it has still running the listing knows more."""
    at = datetime(2026, 11, 27, 12, tzinfo=UTC).replace(tzinfo=None)
    texts = [
        (SACCT.format(state=state, end=end), "sacct", {}),
        (job(1, "COMPLETED", "2026-11-27T11:50:00"), "listing", {"observed_at": at}),
    ]
    for text, name, options in texts if is_first else texts[::-1]:
        read_text("slurm", text, name, cluster="lab", zone=UTC_ZONE, **options)

    (row,) = store.read("select state, hour(end_at), suspended_s from raw.job_runs").rows()
    assert row == ("COMPLETED", 11, suspended_s)
