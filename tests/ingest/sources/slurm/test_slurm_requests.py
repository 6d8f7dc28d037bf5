"""What jobs ask of nodes and why they wait, as the controller lists them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.slurm.features import feature_sets
from goodput_ingest.sources.slurm.jobs import parse_jobs
from goodput_ingest.sources.slurm.json_answers import parse_queue
from goodput_ingest.sources.slurm.texts import Slurm

NOON = datetime.fromisoformat("2026-11-20 12:00")
JOB = (
    "JobId=56 JobName={name} UserId=alice(1001) JobState={state} Reason={reason} Dependency=(null) "
    "SubmitTime=2026-11-20T11:54:54 ReqNodeList={nodes} ExcNodeList={excluded} NodeList= "
    "NumNodes={count} NumCPUs=2 ReqTRES={tres} AllocTRES=(null) CoreSpec=* Features={features} "
    "DelayBoot=00:00:00 Comment={note}"
)
PENDING = {
    "name": "train", "state": "PENDING", "reason": "Resources", "nodes": "(null)", "note": "",
    "excluded": "(null)", "count": "1", "tres": "cpu=2,gres/gpu=8", "features": "(null)",
}  # fmt: skip
# what a listing has besides; reason, requested and excluded nodes, features, number of nodes
LISTED = {
    "any node": ({}, ("Resources", None, None, None, 1)),
    "a list of nodes": ({"nodes": "n[1-2]"}, ("Resources", ["n1", "n2"], None, None, 1)),
    "without some nodes": ({"excluded": "n3"}, ("Resources", None, ["n3"], None, 1)),
    "features": ({"features": "ib&h100"}, ("Resources", None, None, ["h100&ib"], 1)),
    "two nodes or more": ({"count": "2-4"}, ("Resources", None, None, None, 2)),
    "a reason with words": (
        {"reason": "ReqNodeNotAvail,_May_be_reserved_for_other_job"},
        ("ReqNodeNotAvail,_May_be_reserved_for_other_job", None, None, None, 1),
    ),
    "one that runs where it asked to": (
        {"state": "RUNNING", "nodes": "n1"}, (None, ["n1"], None, None, 1),
    ),
    "one that runs anywhere": ({"state": "RUNNING"}, None),
    "one without GPUs": ({"tres": "cpu=2"}, None),
}  # fmt: skip
COLUMNS = ("reason", "requested_nodes", "excluded_nodes", "feature_sets", "nodes_requested")


@pytest.mark.parametrize(("said", "expected"), LISTED.values(), ids=LISTED)
def test_scontrol_lists_a_request(said, expected):
    text = JOB.format(**{**PENDING, **said})
    _, _, asked = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"), observed_at=NOON)

    assert asked.rows.select(COLUMNS).rows() == ([] if expected is None else [expected])
    assert set(asked.rows["observed_at"]) <= {NOON}


@pytest.mark.parametrize(("said", "expected"), LISTED.values(), ids=LISTED)
def test_squeue_lists_a_request(said, expected):
    job = {**PENDING, **said}
    record = {
        "job_id": 56, "submit_time": 1763639694, "job_state": [job["state"]],
        "state_reason": job["reason"], "tres_req_str": job["tres"],
        "required_nodes": job["nodes"].replace("(null)", ""),
        "excluded_nodes": job["excluded"].replace("(null)", ""),
        "features": job["features"].replace("(null)", ""),
        "node_count": {"set": True, "infinite": False, "number": int(job["count"][0])},
    }  # fmt: skip
    _, _, asked = parse_queue([(1, record)], "lab", NOON)

    assert asked.rows.select(COLUMNS).rows() == ([] if expected is None else [expected])


@pytest.mark.parametrize("field", ["name", "note"])
@pytest.mark.parametrize(
    "forged",
    [" ReqNodeList=n9 ExcNodeList=n1 x", " Features=x DelayBoot=1", " NumNodes=9 NumCPUs="],
)
def test_a_request_that_free_text_imitates_is_rejected_and_costs_no_gpu(field, forged):
    nodes = "CoreSpec=*   Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:h100:1(IDX:0) "
    text = JOB.format(**{**PENDING, field: f"x{forged}"}).replace("CoreSpec=* ", nodes)
    holds, _, asked = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"), observed_at=NOON)

    assert (asked.rows.height, holds.rows.height, len(holds.rejects)) == (0, 1, 1)


# features as a job asks for them, number of nodes, sets of which a node needs one
FEATURES = {
    "ib": (1, ["ib"]),
    "h100&ib": (1, ["h100&ib"]),
    "h100|a100": (1, ["a100", "h100"]),
    "h100&ib|a100": (1, ["a100", "h100&ib"]),
    "h100|a100&ib": (1, ["a100&ib", "h100&ib"]),  # from left to right
    "(h100|a100)&ib": (1, ["a100&ib", "h100&ib"]),
    "h100&(ib|roce)": (1, ["h100&ib", "h100&roce"]),
    "[rack1|rack2]": (4, ["rack1", "rack2"]),
    "[rack1*2&rack2*4]": (6, ["rack1", "rack2"]),
    "rack1*2&rack2*4": (6, ["rack1", "rack2"]),
    "h100*4": (16, None),  # the other twelve may be any
    "h100*4 ": (4, ["h100"]),
    "h100&": (1, None),
    "(h100": (1, None),
    "h100)": (1, None),
    "": (1, None),
    "(" * 100 + "a" + ")" * 100: (1, None),
    "&".join(f"(a{n}|b{n})" for n in range(30)): (1, None),
}


@pytest.mark.parametrize(("text", "nodes", "sets"), [(k, *v) for k, v in FEATURES.items()])
def test_features_as_slurm_reads_them(text, nodes, sets):
    assert feature_sets(text, nodes) == sets


def test_listings_with_one_reason_are_one_row_in_ten_minutes(store):
    for minute, reason in enumerate(("Priority", "Priority", "Resources", "Resources")):
        at = NOON + timedelta(minutes=6 * minute)
        text = JOB.format(**{**PENDING, "reason": reason})
        _, _, asked = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"), observed_at=at)
        store.load(asked.batch(source="slurm", origin="here", digest=f"{minute}"))

    rows = store.read(
        "select minute(observed_at), reason from raw.job_requests order by all"
    ).rows()
    assert rows == [(6, "Priority"), (18, "Resources")]


def test_the_accounting_has_features_and_no_moment_of_a_reason(tmp_path):
    header = "Cluster;JobID;State;Submit;Start;End;NNodes;ReqTRES;Reason;Constraints"
    times = "2026-11-20T11:00:00;Unknown;Unknown"
    rows = [
        f"lab;1;PENDING;{times};2;cpu=1,gres/gpu=8;Resources;ib&(h100|a100)",
        f"lab;2;PENDING;{times};1;cpu=1,gres/gpu=8;Resources;",
        f"lab;3;PENDING;{times};1;cpu=1;Resources;ib",
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([header, *rows]) + "\n")
    source = Slurm(tmp_path / "sacct.txt", ReadOptions(zone=ZoneInfo("UTC"), observed_at=NOON))
    asked = {batch.table: batch.rows for batch in source.extract()}["job_requests"]

    found = asked.select("job_id_raw", "feature_sets", "reason", "observed_at").rows()
    assert found == [("1", ["a100&ib", "h100&ib"], None, None)]
