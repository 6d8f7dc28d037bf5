"""Slurm's commands as they are run: arguments, limits, and rejects of their answers."""

import os
from datetime import datetime, timedelta

import pytest
from tests.tables import each

from goodput_ingest.sources.slurm.commands import Commands
from goodput_ingest.sources.slurm.fields import ASKED
from goodput_ingest.sources.slurm.live import SlurmLive
from goodput_queries.errors import IngestError

NOW = datetime.fromisoformat("2026-11-20T12:00:00")
FIELDS = "Cluster JobID JobIDRaw State Submit"
SEPARATOR = "\x1f"
HEADER = "Cluster|JobID|JobIDRaw|State|Submit|Start|End|NodeList|AllocTRES".replace("|", SEPARATOR)


def cluster(folder, **answers):
    """Write commands that print these answers and note how they were called."""
    defaults = {
        "scontrol": 'case "$2" in config) echo "ClusterName = lab";; esac',
        "sacct": f"case $1 in -e) echo {FIELDS};; *) echo '{HEADER}';; esac",
        "squeue": "",
        "sinfo": "",
        "sacctmgr": "echo 'Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User'",
    }
    for name, script in (defaults | answers).items():
        file = folder / name
        file.write_text(f'#!/bin/sh\necho "$(basename $0) $*" >> "{folder}/calls"\n{script}\n')
        file.chmod(0o755)
    return folder


def poll(folder, reached=None):
    source = SlurmLive(folder=str(folder), backfill_s=3_600)
    return list(source.poll({} if reached is None else {source.origin: reached}, NOW))


def calls(folder, name):
    return [c for c in (folder / "calls").read_text().splitlines() if c.startswith(f"{name} ")]


@each({
    "fails": ("echo 'sacct: error: slurmdbd is down' >&2; exit 1",
              "sacct does not reach slurmdbd: sacct: error: slurmdbd is down"),
    "hangs": ("exec sleep 100", r"sacct took longer than 0\.2 s and was stopped"),
    "is not there": (None, r"sacct cannot be run \(No such file or directory\)"),
})  # fmt: skip
def test_a_command_without_an_answer_is_a_stated_failure(tmp_path, script, why):
    folder = tmp_path if script is None else cluster(tmp_path, sacct=script)
    limit = {"timeout_s": 0.2} if script and "sleep" in script else {}
    with pytest.raises(IngestError, match=why):
        Commands(str(folder), **limit).text("sacct")


@pytest.mark.parametrize(("arguments", "expected"), [((), "UTC %s 0\n"), (("--json",), "UTC  0\n")])
def test_text_is_asked_for_in_epoch_seconds_and_json_without_a_form(tmp_path, arguments, expected):
    """The JSON of 22.05 cannot be printed: sacct reads its own dates back in that form."""
    folder = cluster(tmp_path, sinfo='echo "$TZ $SLURM_TIME_FORMAT $SLURM_BITSTR_LEN"')

    assert Commands(str(folder)).text("sinfo", *arguments) == expected


def test_the_first_poll_asks_far_back_and_later_ones_overlap_for_fields_that_sacct_has(tmp_path):
    folder = cluster(tmp_path)
    for reached in (None, "2026-11-20T11:59:00", "2027-11-20T11:59:00"):
        poll(folder, reached and datetime.fromisoformat(reached))

    asked = [c for c in calls(folder, "sacct") if " -S " in c]
    assert all(c.endswith("-o Cluster,JobID,JobIDRaw,State,Submit") for c in asked)
    assert [c.split(" -S ")[1].split()[0] for c in asked] == [
        "2026-11-20T11:00:00", "2026-11-20T10:59:00", "2026-11-20T11:00:00",
    ]  # fmt: skip


STARTED = int(datetime.fromisoformat("2026-11-20T11:00:00+00:00").timestamp())


def test_a_record_that_the_controller_does_not_know_is_rejected(tmp_path):
    """Job 7 runs in both; 8 is a runaway; 9 has just begun, and may be in one listing alone."""
    rows = [
        f"lab|{job}|{job}|RUNNING|{start}|{start}|Unknown|n1|".replace("|", SEPARATOR)
        for job, start in ((7, STARTED), (8, STARTED), (9, STARTED + 3_590))
    ]
    text = "\n".join([HEADER, *rows])
    sacct = f"case $1 in -e) echo Cluster JobID;; *) cat <<'END'\n{text}\nEND\n;; esac"
    folder = cluster(tmp_path, sacct=sacct, squeue="echo 7")

    (runs,) = (b for b in poll(folder) if b.table == "job_runs")

    assert runs.rows["job_id"].to_list() == ["7", "9"]
    assert [r.reason for r in runs.rejects] == [
        "slurm: job 8 runs by the accounting, and the controller does not know it. "
        "See sacctmgr show runawayjobs."
    ]


@pytest.mark.parametrize("kind", ["(null)", "accounting_storage/none"])
def test_of_a_cluster_without_accounting_jobs_are_those_of_the_controller(tmp_path, kind):
    job = (
        f"JobId=7 JobName=x UserId=ann(1) GroupId=g(1) JobState=RUNNING SubmitTime={STARTED} "
        f"StartTime={STARTED} EndTime={STARTED + 86_400} NodeList=n1 CoreSpec=* JOB_GRES=gpu:1 "
        "Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:0)"
    )
    config = f"ClusterName = lab; echo 'AccountingStorageType   = {kind}'"
    off = "echo 'Slurm accounting storage is disabled' >&2; exit 1"
    scontrol = f"case $2 in config) echo {config};; job) echo '{job}';; esac"
    folder = cluster(tmp_path, scontrol=scontrol, sacct=off, sacctmgr=off)

    found = {batch.table: batch.rows for batch in poll(folder)}

    assert found["job_runs"].select("job_id", "state", "gpus", "end_at", "observed_at").rows() == [
        ("7", "RUNNING", 1, None, NOW)
    ]
    assert found["holds"].select("node", "slurm_index").rows() == [("n1", 0)]
    assert SlurmLive(folder=str(folder)).probe() == []


def test_what_is_rejected_in_each_poll_is_counted_once(store, tmp_path):
    """Each answer differs a little from the one before, as times that have passed do."""
    row = dict.fromkeys(ASKED, "") | {"Cluster": "lab", "JobID": "7", "JobIDRaw": "7"}
    row |= {"State": "WOBBLING", "Submit": "soon", "ElapsedRaw": "$COUNT"}
    count = f"COUNT=$(wc -l < {tmp_path}/calls)"
    job = "JobId=7 JobName=x UserId=u(1) JobState=RUNNING JobState=RUNNING"
    node = "gpu1;train;wobbly;gpu:4;$COUNT/0/0/4;100;ib;none;none;".replace(";", "\x1f")
    folder = cluster(
        tmp_path,
        scontrol=f'''{count}; case "$2" in config) echo "ClusterName = lab";;
            job) echo "{job} Priority=$COUNT"; echo "   RunTime=$COUNT";; esac''',
        squeue="echo 7",
        sinfo=f'{count}; echo "{node}"',
        sacctmgr="true",
        sacct=f'''{count}; case $1 in -e) echo {" ".join(ASKED)};; *)
            echo "{SEPARATOR.join(ASKED)}"; echo "{SEPARATOR.join(row.values())}";; esac''',
    )
    source = SlurmLive(folder=str(folder))

    for minute in range(2):
        for batch in source.poll({}, NOW + timedelta(minutes=minute)):
            store.load(batch)

    reasons = store.read("select reason from raw.rejects order by 1")["reason"].to_list()
    assert len(reasons) == 3
    for reason, said in zip(reasons, ("soon", "job rejected", "wobbly"), strict=True):
        assert said in reason
    assert store.read("select sum(rejects)::int from state.ingested").item() == 3


def test_a_reason_that_holds_a_bar_does_not_cost_the_node(tmp_path):
    cells = "n1;gpu;idle+drain;gpu:h100:8;0/16/0/16;1000;ib;GPU 3 | Xid;root;"
    folder = cluster(tmp_path, sinfo=f"echo '{cells.replace(';', SEPARATOR)}'")

    states = next(batch for batch in poll(folder) if batch.table == "node_states")

    reported = states.rows.select("node", "state", "reason", "start_at").rows()
    assert reported == [("n1", "drained", "GPU 3 / Xid", NOW)]


def test_an_answer_leaves_no_file_behind(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    poll(cluster(tmp_path))

    assert os.listdir(scratch) == []  # noqa: PTH208 -- names are what counts


def test_accounting_that_tracks_no_gpus_is_reported(tmp_path):
    folder = cluster(tmp_path, sacctmgr="echo 'cpu|'")

    (finding,) = SlurmLive(folder=str(folder)).probe()

    assert "AccountingStorageTRES=gres/gpu" in finding
