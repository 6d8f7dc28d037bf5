"""MLPerf Training v4.0 submissions, against the published figures, and energy to the joule.

Published energy (smc.co/mlperfv40/results/llama2-70b-lora): the mean over the runs less the fastest
and the slowest, times MLCommons' convergence factor. A run's energy is each node's mean power
between start and stop, readings covering back to the one before, plus the network's estimate, times
the scored time.
"""

import csv
import json
import tarfile

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check
from goodput_queries.names import resolved
from goodput_queries.scope import Scope
from goodput_scenarios.comparison.compare import compared
from goodput_scenarios.comparison.gate import Limit
from goodput_scenarios.comparison.sides import Side

pytestmark = reading(EXTERNAL, pytest.mark.slow)
SMC, NVIDIA = EXTERNAL / "mlperf-train-v4.0-smc", EXTERNAL / "mlperf-train-v4.0-nvidia"
PUBLISHED_J = {
    ("smc-ac-power", "1xSMC-H100-SXM-80GB"): 12_127_904,
    ("smc-dc-power", "1xSMC-H100-SXM-80GB"): 11_769_962,
    ("smc-ac-power", "8xSMC-H100-SXM-80GB"): 20_644_275,
    ("smc-dc-power", "8xSMC-H100-SXM-80GB"): 20_381_549,
    ("smc-ac-power", "64xSMC-H100-SXM-80GB"): 46_574_813,
    ("smc-dc-power", "64xSMC-H100-SXM-80GB"): 45_837_402,
}
COMPARED = (  # measured on the AC and on the DC side
    "8xSMC-H100-SXM-80GB/llama2_70b_lora/result_5742-240517053836692164828_3"
)
ENERGY = """
with readings as (
    select node, power_w, epoch_ms(ts) as ts_ms,
        lag(epoch_ms(ts)) over (partition by node order by ts) as since_ms
    from raw.node_samples where node not like '%/sw_0'
),

nodes as (
    select regexp_replace(node, '/[^/]+$', '') as run, node,
        sum(power_w * (ts_ms - since_ms)) / (max(ts_ms) - min(ts_ms)) as mean_w
    from readings group by all
),

networks as (
    select regexp_replace(node, '/[^/]+$', '') as run, max(power_w) as mean_w
    from raw.node_samples where node like '%/sw_0' group by all
),

scored as (
    select run_id as run, max(dur_s) as run_s from raw.job_events where event = 'step' group by all
)

select split_part(run, '/', 1) as org, split_part(run, '/', 2) as system,
    split_part(run, '/', 3) as benchmark, split_part(run, '/', 4) as run_name,
    any_value(run_s) as run_s, sum(nodes.mean_w) * any_value(run_s) as nodes_j,
    coalesce(any_value(networks.mean_w), 0) * any_value(run_s) as network_j
from scored inner join nodes using (run) left join networks using (run)
group by run
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("submissions")
    for archive in (SMC / "smc.tar.gz", NVIDIA / "nvidia.tar.gz"):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def built(module_store, unpacked):
    """Give the ledger of each submission, which was read as a whole, in one command."""
    found = {}
    for name, pattern in {"smc": "smc-*c-power", "nvidia": "NVIDIA"}.items():
        found[name] = module_store()
        summary = ingest(found[name], "auto", list(unpacked.glob(pattern)), ReadOptions())
        assert summary.refused == []
        found[name].build()
    return found


@pytest.fixture(scope="module")
def smc(built):
    return built["smc"]


def expected(submission, org):
    """Return the rows that are expected of the runs of a side."""
    with (submission / "expected_runs.csv").open() as file:
        return [row for row in csv.DictReader(file) if org in (None, row["org"])]


def test_the_energy_of_every_run_and_the_published_means_come_out(smc, unpacked):
    runs = smc.read(ENERGY).rows(named=True)

    joules = {(r["org"], r["system"], r["benchmark"], r["run"]): (
                  float(r["node_joules"]), float(r["switch_est_joules"]))
              for r in expected(SMC, None)}  # fmt: skip
    found = {
        (r["org"], r["system"], r["benchmark"], r["run_name"]): (r["nodes_j"], r["network_j"])
        for r in runs
    }
    assert found == {key: pytest.approx(value, abs=0.1) for key, value in joules.items()}
    means = {}
    for org, system in PUBLISHED_J:
        folder = unpacked / org / "results" / system / "llama2_70b_lora"
        factor = json.loads((folder / "scaling.json").read_text())["scaling_factor"]
        of = {"org": org, "system": system, "benchmark": "llama2_70b_lora"}.items()
        of_system = [run for run in runs if run.items() >= of]
        kept = sorted((r["run_s"], r["nodes_j"] + r["network_j"]) for r in of_system)[1:-1]
        means[org, system] = round(factor * sum(j for _, j in kept) / len(kept))
    assert means == PUBLISHED_J


def test_runs_of_minutes_have_the_energy_of_their_meters_in_statements(smc):
    """Of systems whose meters ran as long as the run; none of them covers a whole hour."""
    joules = {
        "/".join((r["system"], r["benchmark"], r["run"])): float(r["node_joules"])
        for r in expected(SMC, "smc-ac-power")
        if not r["system"].startswith("1x")
    }
    found = smc.read(
        "select replace(run_id, 'smc-ac-power/', ''), (sum(wall_mj) / 1000)::double "
        "from marts.statement_lines where line = 'usage' and cluster = 'smc-ac-power' "
        "and run_id not like '%/1xSMC%' group by run_id"
    )

    assert dict(found.rows()) == pytest.approx(joules, rel=0.02)


def test_one_job_measured_on_both_sides_differs_in_energy_alone(smc):
    """By as much as the readings say; time and GPUs are alike, and without steps no gate passes."""
    joules = {row["org"]: float(row["node_joules"]) for row in expected(SMC, None)
              if row["run"] == COMPARED.rpartition("/")[2]}  # fmt: skip

    scopes = {org: Scope(run=f"{org}/{COMPARED}") for org in ("smc-ac-power", "smc-dc-power")}
    sides = [Side(org, resolved(smc, scope)) for org, scope in scopes.items()]
    found = compared(
        lambda sql, scope: smc.read(sql, scope=scope), *sides, limits=[Limit("slower", 0.03)]
    )

    change = dict(found.measures.select("measure", "change_ratio").rows())
    assert change["Allocated GPU time"] == change["Goodput of allocated time"] == 0
    ratio = joules["smc-dc-power"] / joules["smc-ac-power"] - 1
    assert change["Energy at node meters"] == pytest.approx(ratio, abs=0.002)
    assert ratio == pytest.approx(-0.02, abs=0.005)
    assert set(found.attributes.filter("is_different")["attribute"]) == {"cluster", "node_names"}
    assert found.ledger["change_ratio"].abs().max() == 0
    assert found.verdicts[0][1].outcome == "not comparable"


def test_runs_of_a_benchmark_have_its_published_time(smc):
    """The medians of reference.mlperf_results are those of these logs."""
    ratios = smc.read("select own_runs, time_ratio from marts.reference_results "
                      "where submitter = 'Sustainable Metal Cloud' order by benchmark, gpus",
                      scope=Scope(cluster="smc-ac-power")).rows()  # fmt: skip

    assert ratios == [(runs, pytest.approx(1, abs=0.001)) for runs in (10, 10, 10, 10, 5, 5)]


def test_stops_that_carry_the_start_are_named_and_nothing_else_is_rejected(smc):
    """The logs of one-node bert and llama2: 20 on the AC side, 10 on the DC side.

    Readings of no power at all are kept.
    """
    rejects = smc.read(
        "select source, split_part(reason, ':', 1), count(*) from raw.rejects group by all"
    ).rows()

    assert rejects == [("node-power", "power_measurement_stop carries the start's time", 30)]
    without = "from raw.node_samples where power_w = 0 and node like 'smc-dc-power/%'"
    assert smc.read(f"select count(*) {without}").item() == 7


def gpu_ms(store, cluster):
    """Return the ledger's GPU-milliseconds by category and phase; its checks find nothing."""
    assert check(store)["violations"].sum() == 0
    rows = store.read(
        "select category, phase, sum(gpu_ms)::bigint from marts.ledger_scoped group by all",
        scope=Scope(cluster=cluster),
    ).rows()
    return {(category, phase): ms for category, phase, ms in rows}


@pytest.mark.parametrize(("name", "org"), [("nvidia", "NVIDIA"), ("smc", "smc-ac-power")])
def test_each_run_holds_its_gpus_from_first_init_to_stop(built, name, org):
    runs = """select job_id, state, gpus, gpus * (epoch_ms(end_at) - epoch_ms(start_at))
        from raw.job_runs where cluster = $1"""
    found = {job: held for job, *held in built[name].read(runs, [org]).rows()}

    states = {"success": "COMPLETED", "aborted": "FAILED"}
    assert found == {f"{org}/{row['system']}/{row['benchmark']}/{row['run']}": [
                         states[row["status"]], int(row["gpus"]),
                         int(row["gpus"]) * (int(row["run_stop"]) - int(row["init_start"]))]
                     for row in expected(SMC if name == "smc" else NVIDIA, org)}  # fmt: skip


# the start-up of runs that were aborted later is start-up, too, and wasted all the same
PUBLISHED = {  # store, cluster: GPU-hours, parts of them in percent
    ("smc", "smc-ac-power"): (463.0689, [
        (lambda key: key == ("startup", "init"), 35.009),
        (lambda key: key == ("other_declared", "eval"), 7.354),
        (lambda key: key[0] == "step_unsplit", 57.637),
    ]),
    ("nvidia", "NVIDIA"): (12_967.2132, [
        (lambda key: "startup" in key, 78.954),
        (lambda key: key[0] == "failed_without_progress", 1.040),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("of", PUBLISHED, ids="-".join)
def test_the_ledger_gives_the_published_gpu_hours_and_shares(built, of):
    """NVIDIA's has seven systems: 94,768 GPUs, each there for minutes of a year."""
    hours, parts = PUBLISHED[of]
    found = gpu_ms(built[of[0]], of[1])
    total = sum(found.values())

    assert round(total / 3.6e6, 4) == hours
    for is_it, percent in parts:
        assert round(100 * sum(found[key] for key in found if is_it(key)) / total, 3) == percent


def test_thirty_jobs_measured_on_both_sides_are_there_once_a_cluster(smc, store, unpacked):
    found = smc.read("select cluster, count(*) from raw.job_runs group by all")
    assert dict(found.rows()) == {"smc-ac-power": 50, "smc-dc-power": 30}

    both = [path / "results" for path in unpacked.glob("smc-*")]
    ingest(store, "mlperf", both, ReadOptions(cluster="smc"))

    assert store.read("select count(*) from raw.job_runs").item() == 50
