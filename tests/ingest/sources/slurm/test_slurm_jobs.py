"""`scontrol show job -d`: which GPUs of which node a job has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.sources.slurm.jobs import parse_jobs
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from goodput_ingest.formats.parsed import Parsed

JOB = (
    "JobId=56 JobName={name} UserId=alice(1001) JobState=RUNNING Reason=None "
    "SubmitTime=2026-11-20T11:54:54 EligibleTime=2026-11-20T11:54:54 NodeList=node[002-003] "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* JOB_GRES={job_gres} {nodes} MinCPUsNode=1 Comment={note}"
)


def job(nodes: str, *, job_gres: str = "gpu:h100:3", name: str = "train", note: str = "") -> str:
    return JOB.format(nodes=nodes, job_gres=job_gres, name=name, note=note)


def on(node: str, gres: str) -> str:
    return f"  Nodes={node} CPU_IDs=15 Mem=500 GRES={gres}"


def parse(text: str) -> Parsed:
    parsed, _, _ = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"))
    return parsed


def held(text: str) -> list[tuple[Any, ...]]:
    """Return node, index, type and number of each hold."""
    parsed = parse(text)
    assert not parsed.rejects
    return parsed.rows.select("node", "slurm_index", "gpu_type", "gpus").rows()


@pytest.mark.parametrize(
    ("gres", "indices"),
    [("gpu:h100:3(IDX:0-2)", [0, 1, 2]), ("gpu:h100:3(IDX:0,2-3)", [0, 2, 3])],
)
def test_a_gpu_that_is_named_gives_a_row(gres: str, indices: list[int]) -> None:
    assert held(job(on("node003", gres))) == [("node003", i, "h100", None) for i in indices]


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
def test_a_part_of_a_gpu_gives_a_row(text: str, expected: list[tuple[Any, ...]]) -> None:
    _, parts, _ = parse_jobs(job(text, job_gres="(null)"), cluster="lab", zone=ZoneInfo("UTC"))

    assert parts.rows.select("node", "kind", "amount").rows() == expected


def test_gpus_may_split_unevenly_over_nodes() -> None:
    nodes = on("node002", "gpu:h100:2(IDX:0-1)") + on("node003", "gpu:h100:1(IDX:7)")

    assert [(node, index) for node, index, *_ in held(job(nodes))] == [
        ("node002", 0),
        ("node002", 1),
        ("node003", 7),
    ]


def test_a_group_of_nodes_has_the_same_gpus_on_each() -> None:
    assert len(held(job(on("node[002-004]", "gpu:2(IDX:0-1)")))) == 6


@pytest.mark.parametrize("gres", ["gpu:h100:3", "gpu:h100:3(IDX:N/A)", "gpu:h100:3(IDX:0)"])
def test_without_indices_only_the_number_is_reported(gres: str) -> None:
    assert held(job(on("node003", gres))) == [("node003", None, "h100", 3)]


def test_a_job_that_ended_on_one_node_reports_its_number() -> None:
    """After the end the node's GRES is empty; the job's own then belongs to its only node."""
    text = job(on("mig01", ""), job_gres="gpu:3g.40gb:1")

    assert held(text) == [("mig01", None, "3g.40gb", 1)]


def test_a_job_that_ended_on_two_nodes_reports_nothing() -> None:
    assert held(job(on("node[002-003]", ""))) == []


def test_a_job_without_gpus_or_nodes_gives_no_row() -> None:
    pending = job("", job_gres="(null)").replace(" NodeList=node[002-003]", " NodeList=(null)")

    assert held(job(on("cpu-a01", ""), job_gres="(null)") + "\n" + pending) == []


def test_a_record_over_many_lines_reads_the_same() -> None:
    one_line = job(on("node003", "gpu:h100:3(IDX:0-2)"))
    many = one_line.replace(" JobState", "\n   JobState").replace("  Nodes=", "\n     Nodes=")

    assert held(many + "\n\n" + one_line.replace("=56", "=57", 1)) == held(one_line) * 2


def test_a_name_that_imitates_fields_is_rejected() -> None:
    forged = "x CoreSpec=* JOB_GRES=gpu:8 Nodes=node001 CPU_IDs=0 Mem=1 GRES=gpu:8(IDX:0-7)"

    parsed = parse(job(on("node003", "gpu:1(IDX:0)"), name=forged))

    assert parsed.rows.is_empty()
    assert "CoreSpec= appears 2 times" in parsed.rejects[0].reason


def test_a_comment_that_imitates_a_time_is_rejected() -> None:
    note = "x SubmitTime=2020-01-01T00:00:00"

    assert parse(job(on("node003", "gpu:1(IDX:0)"), note=note)).rejects


@pytest.mark.parametrize("gres", ["gpu:h100:999999(IDX:0-999998)", "gpu:h100:many"])
def test_an_unbelievable_number_is_rejected(gres: str) -> None:
    assert parse(job(on("node003", gres))).rejects


def test_the_cluster_is_asked_for() -> None:
    with pytest.raises(IngestError, match="--cluster"):
        parse_jobs(job(""), cluster=None, zone=None)


def test_a_local_time_without_a_zone_is_refused() -> None:
    with pytest.raises(IngestError, match="--timezone"):
        parse_jobs(job(""), cluster="lab", zone=None)
