"""Whose cluster a job log is of that names none: that of the only job with its id."""

import pytest
from tests.ingest.job_log_lines import ITERATION, UTC

from goodput_ingest.live.tail import Tail
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import lake_package

SACCT = ("Cluster|JobID|JobIDRaw|User|Account|Partition|State|ExitCode|Submit|Start|End|ElapsedRaw|"
         "NNodes|NodeList|ReqTRES|AllocTRES|JobName\n")  # fmt: skip
JOB = (
    "{cluster}|{job}|{job}|u1|nlp|gpu|COMPLETED|0:0|2026-08-20T13:59:00Z|2026-08-20T14:00:00Z|"
    "2026-08-20T14:10:00Z|600|1|n1|cpu=64,gres/gpu=8,node=1|cpu=64,gres/gpu=8,node=1|pre\n"
)
STEP = ITERATION.format(second=11, step=1, ms=1000.0)


@pytest.fixture
def accounting(tmp_path):
    return (tmp_path / "sacct.txt", SACCT + JOB.format(cluster="alpha", job=4711))


@pytest.fixture
def log(tmp_path):
    return (tmp_path / "slurm-4711.out", STEP)


def loaded(store, file, options=UTC):
    path, text = file
    path.write_text(text)
    ingest(store, "auto", [path], options)


def clusters(store):
    return store.read("select distinct cluster from raw.job_events")["cluster"].to_list()


def said(store):
    named = "from marts.data_quality where kind = 'logs without a cluster'"
    return store.read(f"select example, n {named}").rows()


LEDGER = "from marts.ledger_hourly_by_node order by all"


@pytest.fixture(scope="module")
def ledger(module_store, tmp_path_factory):
    """Give the ledger of a log and its accounting, which were built together."""
    folder, store = tmp_path_factory.mktemp("together"), module_store()
    loaded(store, (folder / "slurm-4711.out", STEP))
    loaded(store, (folder / "sacct.txt", SACCT + JOB.format(cluster="alpha", job=4711)))
    store.build()
    assert said(store) == [("4711", 1)]
    return store.read(LEDGER).rows()


@pytest.mark.parametrize("is_log_first", [True, False])
def test_it_does_not_matter_what_was_built_first(store, log, accounting, ledger, is_log_first):
    first, second = (log, accounting) if is_log_first else (accounting, log)
    loaded(store, first)
    store.build()
    assert clusters(store) == ([None] if is_log_first else [])

    loaded(store, second)
    store.build()

    attempts = "select cluster, last_step from marts.attempts"
    assert store.read(attempts).rows() == [("alpha", 1)]
    assert store.read(LEDGER).rows() == ledger


@pytest.mark.parametrize("jobs", [[("alpha", 4711), ("beta", 12)], [("alpha", 4712)]],
                         ids=["two clusters", "no such job"])  # fmt: skip
def test_a_log_is_of_no_cluster_but_the_only_one_that_has_its_job(store, tmp_path, log, jobs):
    text = "".join(JOB.format(cluster=cluster, job=job) for cluster, job in jobs)
    loaded(store, (tmp_path / "sacct.txt", SACCT + text))
    loaded(store, log)
    store.build()

    assert clusters(store) == [None]
    assert said(store) == []


def test_a_followed_log_is_its_jobs_also_when_it_is_read_once_more(store, log, accounting):
    path, text = log
    path.write_text(text)
    loaded(store, accounting)
    for _ in range(2):  # a process that follows it, and the next one
        for batch in Tail(str(path.parent), "job-log", "*.out", timezone="UTC").poll({}, None):
            store.load(batch)
        store.build()

    found = store.read("select cluster, event from raw.job_events order by event").rows()
    assert found == [("alpha", "metric"), ("alpha", "step")]  # its length is 50,000 steps


def test_a_log_in_a_lake_is_its_jobs_in_a_database_of_the_lake(store, tmp_path, log, accounting):
    tables = pytest.importorskip("goodput_lake.tables.lake")
    lake = lake_package()
    url = tables.Lake.create(str(tmp_path / "lake")).url
    for file in (log, accounting):
        loaded(lake.store(url, ""), file)
    lake.attach(store, url)
    store.build()

    assert clusters(store) == ["alpha"]
    assert said(store) == [("4711", 1)]


def test_a_cluster_that_is_given_holds(store, log, accounting):
    loaded(store, accounting)
    loaded(store, log, ReadOptions(cluster="beta", zone=UTC.zone))
    store.build()

    assert clusters(store) == ["beta"]
    assert said(store) == []
