"""Times of the accounting in the hour that comes twice: 01:00 to 02:00 in New York, 2026-11-01."""

import json
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

FIELDS = "JobID|Submit|Eligible|Start|End|ElapsedRaw|State|NodeList|AllocTRES"
DAY = "2026-11-01T"
UNSETTLED = (
    "slurm: Start or End lies in the hour that comes twice (clocks go back), and ElapsedRaw does "
    "not settle which: its GPU time is not placed. Ask sacct again with SLURM_TIME_FORMAT=%s."
)
# what it shows: submitted, started, ended (local time), elapsed; start, end (UTC), is it ambiguous
RECORDS = {
    "the end in the first of the two": (
        ("00:10", "00:30", "01:30", 3600), ("04:30", "05:30", False),
    ),
    "the end in the second": (("00:10", "00:30", "01:30", 7200), ("04:30", "06:30", False)),
    "the start in the first": (("00:10", "01:30", "02:30", 7200), ("05:30", "07:30", False)),
    "the start in the second": (("00:10", "01:30", "02:30", 3600), ("06:30", "07:30", False)),
    "from the first into the second": (
        ("00:10", "01:30", "01:10", 2400), ("05:30", "06:10", False),
    ),
    "the submission alone": (("01:30", "02:30", "03:30", 3600), ("07:30", "08:30", False)),
    "one that never started ends after its submission": (
        ("01:30", "Unknown", "01:10", 0), (None, "06:10", False),
    ),
    "both within either": (("00:10", "01:10", "01:30", 1200), ("05:10", "05:30", True)),
    "the end without elapsed time": (("00:10", "00:30", "01:30", ""), ("04:30", "05:30", True)),
}  # fmt: skip


@pytest.mark.parametrize(("record", "expected"), RECORDS.values(), ids=RECORDS)
def test_which_of_the_two_is_meant(store, tmp_path, record, expected):
    submit, start, end, elapsed = record
    times = [
        f"{DAY}{clock}:00" if ":" in clock else clock for clock in (submit, submit, start, end)
    ]
    row = ["7", *times, str(elapsed), "COMPLETED", "node001", "gres/gpu=4"]
    (tmp_path / "sacct.txt").write_text(f"{FIELDS}\n{'|'.join(row)}\n")
    options = ReadOptions(cluster="lab", zone=ZoneInfo("America/New_York"))
    ingest(store, "slurm", [tmp_path / "sacct.txt"], options)

    found = store.read(
        "select strftime(start_at, '%H:%M'), strftime(end_at, '%H:%M'), "
        "coalesce(is_time_ambiguous, false) from raw.job_runs"
    )
    assert found.rows() == [expected]
    rejects = store.read("select reason from raw.rejects")["reason"].to_list()
    assert rejects == ([UNSETTLED] if expected[2] else [])


def read(store, tmp_path, file, text):
    (tmp_path / file).write_text(text)
    options = ReadOptions(cluster="lab", zone=ZoneInfo("America/New_York"))
    ingest(store, "slurm", [tmp_path / file], options)
    return store.read("select reason from raw.rejects")["reason"].to_list()


def test_times_as_texts_in_json_are_settled_as_those_of_a_table(store, tmp_path):
    time = {name: f"{DAY}{clock}:00" for name, clock in zip(
        ("submission", "eligible", "start", "end"), ("00:10", "00:30", "00:30", "01:30"),
        strict=True,
    )}  # fmt: skip
    job = {
        "association": {"user": "u1"}, "job_id": 7, "time": {**time, "elapsed": 7200},
        "state": {"current": ["COMPLETED"]}, "nodes": "node001",
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 4}]},
    }  # fmt: skip

    assert read(store, tmp_path, "sacct.json", json.dumps({"jobs": [job]})) == []
    found = store.read("select strftime(end_at, '%H:%M') from raw.job_runs")
    assert found.item() == "06:30"


@pytest.mark.parametrize(
    ("end", "duration", "expected"),
    [("01:30", "01:00:00", "05:30"), ("01:30", "02:00:00", "06:30"), ("01:30", "", None)],
    ids=["the first", "the second", "not said"],
)
def test_the_duration_of_a_reservation_settles_its_end(store, tmp_path, end, duration, expected):
    text = f"ReservationName=r StartTime={DAY}00:30:00 EndTime={DAY}{end}:00"
    said = f" Duration={duration}" if duration else ""
    rejects = read(store, tmp_path, "reservations.txt", f"{text}{said} Nodes=node001 Flags=MAINT\n")

    found = store.read("select strftime(end_at, '%H:%M') as at from raw.reservations")
    assert found["at"].to_list() == ([expected] if expected else [])
    assert ["SLURM_TIME_FORMAT=%s" in reason for reason in rejects] == [True] * (not expected)


def test_a_submission_of_scontrol_is_the_earlier_of_the_two(store, tmp_path):
    text = (
        f"JobId=7 JobName=x JobState=RUNNING SubmitTime={DAY}01:30:00 CoreSpec=* "
        "JOB_GRES=gpu:2 Nodes=node001 CPU_IDs=0-3 Mem=1 GRES=gpu:2(IDX:0-1) "
        f"StartTime={DAY}03:30:00\n"
    )

    assert read(store, tmp_path, "jobs.txt", text) == []
    found = store.read("select strftime(submit_at, '%H:%M') from raw.holds limit 1")
    assert found.item() == "05:30"
