"""Output of Slurm that Goodput cannot use is rejected once, however often it is polled."""

from datetime import datetime, timedelta

from goodput_ingest.sources.slurm.fields import ASKED
from goodput_ingest.sources.slurm.live import SlurmLive

NOW = datetime(2026, 11, 20, 13)  # noqa: DTZ001 -- moments are stored naive, in UTC
# what a command prints; $1 and so on are its arguments, COUNT grows from call to call
COMMANDS = {
    "scontrol": """case "$2" in
        config) echo "ClusterName = lab";;
        job) echo "JobId=7 JobName=x UserId=u(1) JobState=RUNNING JobState=RUNNING Priority=$COUNT"
             echo "   RunTime=$COUNT";;
    esac""",
    "squeue": "echo 7",
    "sinfo": """printf 'gpu1\\037train\\037wobbly\\037gpu:4\\037'
        printf '%s/0/0/4\\037100\\037ib\\037none\\037none\\037\\n' $COUNT""",
    "sacctmgr": "true",
    "sacct": """case "$1" in
        -e) echo "FIELDS";;
        *) echo "HEADER"; echo "ROW";;
    esac""",
}
ROW = {"Cluster": "lab", "JobID": "7", "JobIDRaw": "7", "State": "WOBBLING", "Submit": "soon"}


def fake(folder):
    values = {**ROW, "ElapsedRaw": "$COUNT"}
    texts = {
        "FIELDS": " ".join(ASKED),
        "HEADER": "\x1f".join(ASKED),
        "ROW": "\x1f".join(values.get(name, "") for name in ASKED),
    }
    for name, body in COMMANDS.items():
        text = body
        for key, value in texts.items():
            text = text.replace(f'"{key}"', f'"{value}"')
        path = folder / name
        count = f"echo x >> {folder}/calls; COUNT=$(wc -l < {folder}/calls)"
        path.write_text(f"#!/bin/sh\n{count}\n{text}\n")
        path.chmod(0o755)


def test_a_row_that_is_rejected_in_each_poll_is_counted_once(store, tmp_path):
    fake(tmp_path)
    source = SlurmLive(folder=str(tmp_path))

    for minute in range(3):
        for batch in source.poll({}, NOW + timedelta(minutes=minute)):
            store.load(batch)

    reasons = store.read("select reason from raw.rejects order by 1")["reason"].to_list()
    assert len(reasons) == 3
    for reason, said in zip(reasons, ("soon", "job rejected", "wobbly"), strict=True):
        assert said in reason
    assert store.read("select sum(rejects)::int from state.ingested").item() == 3
