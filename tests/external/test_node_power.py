"""Power readings of MLPerf Training v4.0 runs: the energy of their meters, as was published."""

import contextlib
import csv
import tarfile

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.names import resolved
from goodput_queries.scope import Scope
from goodput_scenarios.comparison.compare import compared
from goodput_scenarios.comparison.gate import Limit
from goodput_scenarios.comparison.sides import Side

pytestmark = reading(EXTERNAL, pytest.mark.slow)
SMC = EXTERNAL / "mlperf-train-v4.0-smc"
COMPARED = (  # measured on the AC and on the DC side
    "8xSMC-H100-SXM-80GB/llama2_70b_lora/result_5742-240517053836692164828_3"
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smc")
    with tarfile.open(SMC / "smc.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def read_in(new_store, unpacked):
    """Give a database into which the whole submission was read, in one command."""
    with contextlib.closing(new_store()) as opened:
        summary = ingest(opened, "auto", [unpacked], ReadOptions())
        assert summary.refused == []
        yield opened


def test_runs_of_minutes_have_the_energy_of_their_meters_in_statements(read_in):
    """Of systems whose meters ran as long as the run; none of them covers a whole hour."""
    with (SMC / "expected_runs.csv").open() as file:
        expected = {
            "/".join((r["system"], r["benchmark"], r["run"])): float(r["node_joules"])
            for r in csv.DictReader(file)
            if r["org"] == "smc-ac-power" and not r["system"].startswith("1x")
        }
    read_in.build()

    found = read_in.read(
        "select run_id, (sum(wall_mj) / 1000)::double from marts.statement_lines "
        "where line = 'usage' and cluster = 'smc-ac-power' and run_id not like '%/1xSMC%' "
        "group by run_id"
    )

    by_run = {run.removeprefix("smc-ac-power/"): joules for run, joules in found.rows()}
    assert by_run == {run: pytest.approx(joules, rel=0.02) for run, joules in expected.items()}


def test_one_job_measured_on_both_sides_differs_in_energy_alone(read_in):
    """By as much as the readings say; time and GPUs are alike, and without steps no gate passes."""
    read_in.build()
    with (SMC / "expected_runs.csv").open() as file:
        joules = {
            row["org"]: float(row["node_joules"])
            for row in csv.DictReader(file)
            if row["run"] == COMPARED.rpartition("/")[2]
        }

    sides = [
        Side(org, resolved(read_in, Scope(run=f"{org}/{COMPARED}")))
        for org in ("smc-ac-power", "smc-dc-power")
    ]
    found = compared(
        lambda sql, scope: read_in.read(sql, scope=scope), *sides, limits=[Limit("slower", 0.03)]
    )

    change = dict(found.measures.select("measure", "change_ratio").rows())
    assert change["Allocated GPU time"] == change["Goodput of allocated time"] == 0
    expected = joules["smc-dc-power"] / joules["smc-ac-power"] - 1
    assert change["Energy at node meters"] == pytest.approx(expected, abs=0.002)
    assert expected == pytest.approx(-0.02, abs=0.005)
    differing = found.attributes.filter("is_different")["attribute"]
    assert set(differing) == {"cluster", "node_names"}
    assert found.ledger["change_ratio"].abs().max() == 0
    assert found.verdicts[0][1].outcome == "not comparable"


def test_runs_of_a_benchmark_have_its_published_time(read_in):
    """The medians of reference.mlperf_results are those of these logs."""
    read_in.build()

    ratios = read_in.read(
        "select own_runs, time_ratio from marts.reference_results "
        "where submitter = 'Sustainable Metal Cloud' order by benchmark, gpus",
        scope=Scope(cluster="smc-ac-power"),
    ).rows()

    assert ratios == [(runs, pytest.approx(1, abs=0.001)) for runs in (10, 10, 10, 10, 5, 5)]
