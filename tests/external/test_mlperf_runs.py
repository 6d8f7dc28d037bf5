"""MLPerf Training v4.0 submissions through ingest and ledger, against the published figures."""

import csv
import shutil
import tarfile

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check
from goodput_queries.database import LocalStore

pytestmark = reading(EXTERNAL, pytest.mark.slow)
NVIDIA, SMC = "mlperf-train-v4.0-nvidia", "mlperf-train-v4.0-smc"
ARCHIVES = {NVIDIA: "nvidia.tar.gz", SMC: "smc.tar.gz"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Give the submissions in their folders; the logs alone, without the power readings."""
    folder = tmp_path_factory.mktemp("mlperf")
    for name, archive in ARCHIVES.items():
        with tarfile.open(EXTERNAL / name / archive) as tar:
            members = [m for m in tar if "/power/" not in m.name]
            tar.extractall(folder, members, filter="data")
    return folder


@pytest.fixture(scope="module")
def built(empty_database, unpacked, tmp_path_factory):
    """Give the ledger of each submitter's runs."""
    stores = {}
    for org in ("NVIDIA", "smc-ac-power"):
        path = tmp_path_factory.mktemp("runs") / "fleet.duckdb"
        shutil.copyfile(empty_database, path)
        stores[org] = LocalStore(path)
        ingest(stores[org], "auto", [unpacked / org / "results"], ReadOptions())
        stores[org].build()
    yield stores
    for store in stores.values():
        store.close()


def expected(name, org):
    with (EXTERNAL / name / "expected_runs.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["org"] == org]


def gpu_ms(store):
    """Return the ledger's GPU-milliseconds by category and phase."""
    rows = store.read(
        "select category, phase, sum(gpu_ms)::bigint from marts.ledger_scoped group by all"
    ).rows()
    return {(category, phase): ms for category, phase, ms in rows}


def shares(found, **of):
    total = sum(found.values())
    return {
        name: round(100 * sum(ms for key, ms in found.items() if is_it(key)) / total, 3)
        for name, is_it in of.items()
    }


@pytest.mark.parametrize(("name", "org"), [(NVIDIA, "NVIDIA"), (SMC, "smc-ac-power")])
def test_each_run_holds_its_gpus_from_first_init_to_stop(built, name, org):
    found = {
        run: (state, gpus, held_ms)
        for run, state, gpus, held_ms in built[org]
        .read(
            """select job_id, state, gpus, gpus * (epoch_ms(end_at) - epoch_ms(start_at))
            from raw.job_runs"""
        )
        .rows()
    }
    states = {"success": "COMPLETED", "aborted": "FAILED"}
    assert found == {
        f"{org}/{row['system']}/{row['benchmark']}/{row['run']}": (
            states[row["status"]],
            int(row["gpus"]),
            int(row["gpus"]) * (int(row["run_stop"]) - int(row["init_start"])),
        )
        for row in expected(name, org)
    }


def test_the_ledger_of_smc_gives_the_published_gpu_hours_and_shares(built):
    found = gpu_ms(built["smc-ac-power"])

    assert round(sum(found.values()) / 3.6e6, 4) == 463.0689
    assert shares(
        found,
        startup=lambda key: key == ("startup", "init"),
        evaluation=lambda key: key == ("other_declared", "eval"),
        training=lambda key: key[0] == "step_unsplit",
    ) == {"startup": 35.009, "evaluation": 7.354, "training": 57.637}
    violations = check(built["smc-ac-power"])
    assert violations.filter(violations["violations"] > 0).rows() == []


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [(None, {"smc-ac-power": 50, "smc-dc-power": 30}), ("smc", {"smc": 50})],
    ids=["a cluster a side", "one cluster"],
)
def test_thirty_jobs_measured_on_both_sides_are_there_once_a_cluster(
    store, unpacked, cluster, expected
):
    both = [unpacked / org / "results" for org in ("smc-ac-power", "smc-dc-power")]

    ingest(store, "auto", both, ReadOptions(cluster=cluster))

    found = store.read("select cluster, count(*) from raw.job_runs group by all")
    assert dict(found.rows()) == expected


def test_the_ledger_of_nvidia_gives_the_published_gpu_hours_and_shares(built):
    """Seven systems in one ledger: 94,768 GPUs, each there for minutes of a year."""
    found = gpu_ms(built["NVIDIA"])

    assert round(sum(found.values()) / 3.6e6, 4) == 12_967.2132
    # the start-up of runs that were aborted later is start-up, too, and wasted all the same
    assert shares(
        found,
        startup=lambda key: "startup" in key,
        aborted=lambda key: key[0] == "failed_without_progress",
    ) == {"startup": 78.954, "aborted": 1.040}
    violations = check(built["NVIDIA"])
    assert violations.filter(violations["violations"] > 0).rows() == []
