"""Real Slurm accounting: against sreport and each record's own arithmetic."""

import csv
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check
from goodput_queries.scope import Scope

pytestmark = reading(EXTERNAL)
RELEASES = {"22.05.8": "goodlab", "24.11.5": "goodlab24"}
FILES = (
    *("final/scontrol_node_o.txt", "final/sacctmgr_event_default.psv"),
    *("final/sacct_core_X_D_unit_separator.txt", "final/scontrol_job_d_o.txt"),
    "running/scontrol_job_d_running.txt",
)
# when the MIG node joined: sreport's capacity counts its 5 instances for 891 of 1,026 s
JOINED = {"22.05.8": "2026-11-20T11:45:09+00:00"}


def read(store, release, folder):
    options = ReadOptions(cluster=RELEASES[release], zone=ZoneInfo("UTC"))
    files = [EXTERNAL / "slurm" / release / name for name in FILES]
    ingest(store, "slurm", [file for file in files if file.exists()], options)
    inventory = folder / "inventory.csv"
    joined = JOINED.get(release, "")
    inventory.write_text(f'node,gpus,mig,valid_from\nmig01,1,"1g.10gb:4,3g.40gb:1",{joined}\n')
    ingest(store, "inventory", [inventory], options)
    store.build()
    return store


@pytest.fixture(scope="module")
def stores(module_store, tmp_path_factory):
    """Give a database of each release, built."""
    folder = tmp_path_factory.mktemp
    return {release: read(module_store(), release, folder(release)) for release in RELEASES}


def test_the_ledger_and_the_reconciliation_give_the_published_figures(stores):
    store = stores["22.05.8"]
    at = (datetime(2026, 11, 20, *of, tzinfo=UTC) for of in ((11, 42, 54), (12,)))
    scope = Scope(*(int(moment.timestamp() * 1000) for moment in at))

    units = "held_gpu_s, capacity_gpu_s, down_gpu_s, drained_gpu_s"
    found = store.read(f"select {units} from marts.scheduler_reconciliation", scope=scope)
    assert found.rows() == [(5013, 45495, 3192, 424)]
    times = "capacity_ms, held_ms, unavailable_ms"
    found = store.read(f"select {times} from marts.goodput_summary", scope=scope)
    assert found.rows() == [(41_931_000, 5_001_571, 3_616_000)]


@pytest.mark.parametrize("release", RELEASES)
def test_each_record_holds_what_its_own_arithmetic_says(stores, release):
    rows = stores[release].read(
        """select runs.job_id, runs.submit_ms // 1000,
            coalesce(sum(segments.end_ms - segments.start_ms), 0) / 1000.0
        from staging.stg_job_runs as runs
        left join marts.ledger_pieces as segments using (job_run_key)
        group by runs.job_run_key, runs.job_id, runs.submit_ms"""
    )
    held = {(job, submit): seconds for job, submit, seconds in rows.rows()}
    with (EXTERNAL / "slurm" / f"expected_gpu_seconds_{release}.csv").open() as file:
        expected = {}
        for row in csv.DictReader(file):
            key = row["jobid"], int(row["submit_epoch"])
            expected[key] = expected.get(key, 0) + float(row["held_gpu_s"])

    assert {key: held.get(key) for key in expected} == expected


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_checks_are_clean(stores, release):
    found = check(stores[release])

    assert found.filter(found["violations"] > 0).rows() == []


def test_a_suspended_job_keeps_its_gpus(stores):
    """Job 16 ran 22 s, 15 of them suspended: all 22 are held."""
    of_job = "from marts.ledger_scoped where job_id = '16' group by all"
    rows = stores["22.05.8"].read(f"select category, sum(gpu_ms)::bigint {of_job}").rows()

    assert dict(rows) == {"suspended": 15_000, "unknown": 7_000}
