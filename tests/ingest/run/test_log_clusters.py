"""Whose cluster a job log is of that names none: that of the only job with its id."""

import pytest
from tests.ingest.job_log_lines import ITERATION, UTC

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

SACCT = (
    "Cluster|JobID|JobIDRaw|User|Account|Partition|State|ExitCode|Submit|Start|End|ElapsedRaw|"
    "NNodes|NodeList|ReqTRES|AllocTRES|JobName\n"
)
JOB = (
    "{cluster}|{job}|{job}|u1|nlp|gpu|COMPLETED|0:0|2026-08-20T13:59:00Z|2026-08-20T14:00:00Z|"
    "2026-08-20T14:10:00Z|600|1|n1|cpu=64,gres/gpu=8,node=1|cpu=64,gres/gpu=8,node=1|pre\n"
)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([("alpha", 4711)], "alpha"),
        ([("alpha", 4711), ("beta", 12)], None),  # two clusters
        ([("alpha", 4712)], None),  # no such job
        ([], None),
    ],
    ids=["its job", "two clusters", "no such job", "no accounting"],
)
@pytest.mark.parametrize("name", ["a-first-4711.out", "slurm-4711.out"])
def test_a_log_is_of_the_only_cluster_that_has_its_job(store, tmp_path, jobs, expected, name):
    text = "".join(JOB.format(cluster=cluster, job=job) for cluster, job in jobs)
    if jobs:
        (tmp_path / "sacct.txt").write_text(SACCT + text)
    (tmp_path / name).write_text(ITERATION.format(second=11, step=1, ms=1000.0))

    summary = ingest(store, "auto", [tmp_path], UTC)

    assert store.read("select cluster from raw.job_events").item() == expected
    assert [note[:43] for note in summary.notes] == (
        ["Logs without a cluster are taken as of alph"] if expected else []
    )


def test_a_cluster_that_is_given_holds(store, tmp_path):
    (tmp_path / "sacct.txt").write_text(SACCT + JOB.format(cluster="alpha", job=4711))
    (tmp_path / "slurm-4711.out").write_text(ITERATION.format(second=11, step=1, ms=1000.0))

    ingest(store, "auto", [tmp_path], ReadOptions(cluster="beta", zone=UTC.zone))

    assert store.read("select cluster from raw.job_events").item() == "beta"
