"""`scontrol show job -d`: which GPUs of which node a job has."""

from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.sources.slurm.jobs import parse_jobs
from goodput_queries.errors import IngestError

JOB = (
    "JobId=56 JobName={name} UserId=alice(1001) JobState=RUNNING Reason=None "
    "SubmitTime=2026-11-20T11:54:54 EligibleTime=2026-11-20T11:54:54 NodeList=node[002-003] "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* JOB_GRES={job_gres} {nodes} MinCPUsNode=1 Comment={note}"
)


def job(nodes, *, job_gres="gpu:h100:3", name="train", note=""):
    return JOB.format(nodes=nodes, job_gres=job_gres, name=name, note=note)


def on(node, gres):
    return f"  Nodes={node} CPU_IDs=15 Mem=500 GRES={gres}"


def parse(text):
    parsed, _, _ = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"))
    return parsed


def held(text):
    """Return node, index, type and number of each hold."""
    parsed = parse(text)
    assert not parsed.rejects
    return parsed.rows.select("node", "slurm_index", "gpu_type", "gpus").rows()


PENDING = job("", job_gres="(null)").replace(" NodeList=node[002-003]", " NodeList=(null)")
# text; node, index, type and number of each hold
HOLDS = {
    "a range of GPUs": (
        job(on("n3", "gpu:h100:3(IDX:0-2)")), [("n3", i, "h100", None) for i in (0, 1, 2)],
    ),
    "GPUs with a gap": (
        job(on("n3", "gpu:h100:3(IDX:0,2-3)")), [("n3", i, "h100", None) for i in (0, 2, 3)],
    ),
    "an uneven split over nodes": (
        job(on("n2", "gpu:h100:2(IDX:0-1)") + on("n3", "gpu:h100:1(IDX:7)")),
        [(node, i, "h100", None) for node, i in (("n2", 0), ("n2", 1), ("n3", 7))],
    ),
    "the same GPUs on each of a group of nodes": (
        job(on("n[2-4]", "gpu:2(IDX:0-1)")),
        [(node, i, None, None) for node in ("n2", "n3", "n4") for i in (0, 1)],
    ),
    "a number without indices": (job(on("n3", "gpu:h100:3")), [("n3", None, "h100", 3)]),
    "indices that are none": (job(on("n3", "gpu:h100:3(IDX:N/A)")), [("n3", None, "h100", 3)]),
    "too few indices": (job(on("n3", "gpu:h100:3(IDX:0)")), [("n3", None, "h100", 3)]),
    # after the end the node's GRES is empty; the job's own then belongs to its only node
    "a job that ended on one node": (
        job(on("mig01", ""), job_gres="gpu:3g.40gb:1"), [("mig01", None, "3g.40gb", 1)],
    ),
    "a job that ended on two nodes": (job(on("n[2-3]", "")), []),
    "a job without GPUs": (job(on("cpu-a01", ""), job_gres="(null)"), []),
    "a job without nodes": (PENDING, []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), HOLDS.values(), ids=HOLDS)
def test_a_listing_gives_its_holds(text, expected):
    assert held(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (on("node003", "shard:a40:2(0/4)"), [("node003", "shard", 2)]),
        (on("node[002-003]", "mps:50"), [("node002", "mps", 50), ("node003", "mps", 50)]),
        (" TresPerNode=gres/shard:2", [("node002", "shard", 2), ("node003", "shard", 2)]),
        (on("node003", "gpu:a40:1(IDX:0),shard:a40:4"), []),  # the whole GPU is held
    ],
    ids=["shards of a node", "MPS of two nodes", "what was asked for", "a GPU with its shards"],
)
def test_a_part_of_a_gpu_gives_a_row(text, expected):
    _, parts, _ = parse_jobs(job(text, job_gres="(null)"), cluster="lab", zone=ZoneInfo("UTC"))

    assert parts.rows.select("node", "kind", "amount").rows() == expected


def test_a_record_over_many_lines_reads_the_same():
    one_line = job(on("node003", "gpu:h100:3(IDX:0-2)"))
    many = one_line.replace(" JobState", "\n   JobState").replace("  Nodes=", "\n     Nodes=")

    assert held(many + "\n\n" + one_line.replace("=56", "=57", 1)) == held(one_line) * 2


def test_a_name_that_imitates_fields_is_rejected():
    forged = "x CoreSpec=* JOB_GRES=gpu:8 Nodes=node001 CPU_IDs=0 Mem=1 GRES=gpu:8(IDX:0-7)"

    parsed = parse(job(on("node003", "gpu:1(IDX:0)"), name=forged))

    assert parsed.rows.is_empty()
    assert "CoreSpec= appears 2 times" in parsed.rejects[0].reason


@pytest.mark.parametrize(
    ("gres", "note"),
    [
        ("gpu:1(IDX:0)", "x SubmitTime=2020-01-01T00:00:00"),
        ("gpu:h100:999999(IDX:0-999998)", ""),
        ("gpu:h100:many", ""),
    ],
    ids=["a comment that imitates a time", "an unbelievable number", "no number"],
)
def test_what_cannot_be_believed_is_rejected(gres, note):
    assert parse(job(on("node003", gres), note=note)).rejects


@pytest.mark.parametrize(("cluster", "why"), [(None, "--cluster"), ("lab", "--timezone")])
def test_cluster_and_zone_are_asked_for(cluster, why):
    with pytest.raises(IngestError, match=why):
        parse_jobs(job(""), cluster=cluster, zone=None)
