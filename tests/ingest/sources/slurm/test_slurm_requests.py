"""What jobs ask of nodes and why they wait, as the controller lists them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.sources.slurm.features import feature_sets
from goodput_ingest.sources.slurm.jobs import parse_jobs
from goodput_queries.errors import IngestError

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


@pytest.mark.parametrize(("cluster", "why"), [(None, "--cluster"), ("lab", "--timezone")])
def test_cluster_and_zone_are_asked_for(cluster, why):
    with pytest.raises(IngestError, match=why):
        parse_jobs(JOB.format(**PENDING), cluster=cluster, zone=None)
