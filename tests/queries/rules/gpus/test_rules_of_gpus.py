"""What scheduler and inventory say, rule by rule."""

import pytest
from tests.queries.conftest import built_together


@built_together
def test_idle_free_time_without_node_evidence_is_unknown_not_idle(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 10, ["a"], 1)
    cluster.job("2", 20, 30, ["a"], 1)
    yield
    assert cluster.gpu_s() == {"unknown": 20, "free_unknown": 10}


@built_together
def test_a_held_gpu_is_never_down(cluster):
    cluster.node("a", 1)
    cluster.watched(100)
    cluster.state("a", "down", 0, 100)
    cluster.job("1", 20, 60, ["a"], 1)
    yield
    assert cluster.gpu_s() == {"down": 60, "unknown": 40}


@built_together
def test_down_comes_before_maintenance_and_drained(cluster):
    cluster.node("a", 1)
    cluster.watched(100)
    cluster.state("a", "drained", 0, 60)
    cluster.state("a", "maintenance", 20, 60)
    cluster.state("a", "down", 40, 60)
    yield
    assert cluster.gpu_s() == {"drained": 20, "maintenance": 20, "down": 20, "idle_no_demand": 40}


@built_together
def test_a_reservation_nobody_uses_is_its_owners(cluster):
    cluster.node("a", 2)
    cluster.watched(100)
    cluster.load(
        "reservations",
        [{"cluster": cluster.name, "name": "r", "nodes": ["a"], "owner": "nlp",
          "start_at": cluster.at(0), "end_at": cluster.at(50)}],
    )  # fmt: skip
    yield
    assert cluster.gpu_s() == {"reserved_idle": 100, "idle_no_demand": 100}


@built_together
def test_gpus_of_a_node_whose_cpus_are_all_held_are_stranded(cluster):
    cluster.node("a", 4)
    cluster.load("nodes", [{"cluster": cluster.name, "node": "a", "cpus": 16, "partitions": ["p"]}])
    cluster.watched(100)
    cluster.job("1", 0, 50, ["a"], 1, cpus=16)
    yield
    assert cluster.gpu_s() == {"unknown": 50, "stranded": 150, "idle_no_demand": 200}


@built_together
def test_demand_counts_from_eligible_not_from_submit(cluster):
    cluster.node("a", 2, partitions=("p",))
    cluster.watched(100)
    cluster.job("1", 60, 100, ["a"], 2, submit=0, eligible=40, partition="p", gpus_requested=2)
    yield
    assert cluster.gpu_s() == {"idle_no_demand": 80, "idle_with_demand": 40, "unknown": 80}


def test_two_jobs_on_one_gpu_the_later_start_has_it_and_the_overlap_is_reported(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.job("2", 60, 100, ["a"], 1)

    evidence.store.build()

    held = evidence.store.read(
        "select job_id, sum(gpu_ms)::bigint from marts.ledger_scoped group by all order by 1"
    )
    assert held.rows() == [("1", 60_000), ("2", 40_000)]
    assert evidence.store.read(
        "select n, gpu_ms from marts.data_quality where kind = 'overlapping holds'"
    ).rows() == [(1, 40_000)]


@built_together
def test_a_job_the_controller_forgot_holds_its_gpu_until_the_node_goes_down(cluster):
    cluster.node("a", 1)
    cluster.watched(1000)
    cluster.state("a", "down", 300, 1000)
    cluster.job("1", 0, None, ["a"], 1, "RUNNING")
    yield
    assert cluster.gpu_s() == {"unknown": 300, "down": 700}


@built_together
def test_parts_of_a_mig_gpu_count_with_their_share_and_the_rest_is_stranded(cluster):
    cluster.node("m", 1)
    cluster.load(
        "gpu_instances",
        [{"cluster": cluster.name, "gpu_uuid": "m#0", "gpu_instance": "3g.40gb.0",
          "profile": "3g.40gb", "compute_slices": 3, "slurm_index": 0}],
    )  # fmt: skip
    cluster.watched(7000)
    cluster.job("1", 0, 7000, ["m"], 1, gpu_type="3g.40gb")
    yield
    assert cluster.gpu_s() == {"unknown": 3000, "stranded": 4000}


@built_together
def test_an_hour_without_a_price_is_unpriced_and_never_zero(cluster):
    cluster.node("a", 1, model="h100")
    cluster.job("1", 0, 7200, ["a"], 1)
    cluster.load(
        "rates",
        [
            {
                "cluster": cluster.name,
                "gpu_model": "H100",
                "price_per_gpu_h": 2.5,
                "valid_to_at": cluster.at(3600),
            }
        ],
    )
    yield
    row = cluster.read("select * from marts.ledger_by_category where gpu_ms > 0").row(0, named=True)
    assert row["cost"] == pytest.approx(2.5)
    assert row["unpriced_gpu_ms"] == 3_600_000
    cost = cluster.read("select * from marts.cost_per_gpu_hour").row(0, named=True)
    assert cost["price_per_gpu_h"] == pytest.approx(2.5)
    assert cost["cost_per_allocated_gpu_h"] is None


@built_together
def test_a_running_job_holds_as_long_as_its_record_says_it_has_run(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=140, suspended_s=10)
    yield
    assert cluster.gpu_s() == {"unknown": 150}


@built_together
def test_free_time_that_nobody_watched_is_not_called_waste(cluster):
    cluster.node("a", 2)
    cluster.job("1", 0, 100, ["a"], 1)
    yield
    summary = cluster.summary()

    assert summary["free_ms"] == 100_000
    assert summary["wasted_ms"] == 0


def test_the_ledger_balances_after_a_gpu_left_the_inventorys_past(evidence):
    evidence.load(
        "gpus",
        [{"cluster": "c", "node": "a", "gpu_uuid": "a#0", "slurm_index": 0, "gpu_model": "h100"}],
        "slurm",
    )
    evidence.watched(4 * 3600)
    evidence.store.build()

    evidence.load(
        "gpus",
        [{"cluster": "c", "node": "a", "gpu_uuid": "GPU-0", "slurm_index": 0, "gpu_index": 0,
          "gpu_model": "h100", "valid_from_at": evidence.at(9000)}],
        "nvml",
    )  # fmt: skip

    # the slot gave way, and left its word that a GPU stood there before
    assert evidence.gpu_s() == {"idle_no_demand": 4 * 3600}


@built_together
def test_a_replaced_gpu_breaks_no_hold(cluster):
    rows = [(f"GPU-{cluster.name}-{i}", i, 0, 500 if i == 3 else None) for i in range(8)] + [
        (f"GPU-{cluster.name}-9", 3, 500, None)
    ]
    cluster.load(
        "gpus",
        [{"cluster": cluster.name, "node": "a", "gpu_uuid": uuid, "slurm_index": index,
          "gpu_model": "h100", "valid_from_at": cluster.at(start), "valid_to_at": cluster.at(end)}
         for uuid, index, start, end in rows],
        "inventory",
    )  # fmt: skip
    cluster.watched(1000)
    cluster.job("1", 0, 400, ["a"], 8)
    cluster.job("2", 500, 900, ["a"], 8, submit=500)
    yield
    assert cluster.gpu_s() == {"unknown": 6400, "idle_no_demand": 1600}


@built_together
def test_a_gpu_that_moves_counts_for_each_node_while_it_is_there(cluster):
    cluster.load(
        "gpus",
        [{"cluster": cluster.name, "node": node, "gpu_uuid": f"GPU-{cluster.name}",
          "slurm_index": 0, "gpu_model": "h100", "valid_from_at": cluster.at(start)}
         for node, start in (("a", 0), ("b", 500))],
        "inventory",
    )  # fmt: skip
    cluster.watched(1000)
    yield
    rows = cluster.read(
        "select node, sum(gpu_ms)::bigint from marts.ledger_scoped group by 1 order by 1"
    )
    assert rows.rows() == [("a", 500_000), ("b", 500_000)]


@built_together
def test_two_sources_that_name_one_gpu_name_one_hold(cluster):
    cluster.node("a", 2)
    cluster.watched(100)
    cluster.job("1", 0, 100, ["a"], 2)
    for source in ("dcgm", "prometheus"):
        cluster.load(
            "holds",
            [{"cluster": cluster.name, "job_id_raw": "1", "submit_at": cluster.at(0), "node": "a",
              "gpu_uuid": f"{cluster.name}/a#{i}", "method": "hpc_job"} for i in range(2)],
            source,
        )  # fmt: skip
    yield
    assert cluster.gpu_s() == {"unknown": 200}


@built_together
def test_an_a10_price_is_not_an_a100s(cluster):
    cluster.node("a", 1, model="NVIDIA A100-SXM4-80GB")
    cluster.job("1", 0, 3600, ["a"], 1)
    cluster.load(
        "rates",
        [
            {"cluster": cluster.name, "gpu_model": m, "price_per_gpu_h": p}
            for m, p in (("A10", 1), ("A100", 3))
        ],
    )
    yield
    assert cluster.summary()["capacity_cost"] == pytest.approx(3)


@built_together
def test_a_gpu_repartitioned_still_counts_once(cluster):
    """3g + 4g for 500 s, then 7g: 1,000 s of one GPU."""
    cluster.node("m", 1)
    layout = [("3g.40gb", 3, 0, 0, 500), ("4g.40gb", 4, 1, 0, 500), ("7g.80gb", 7, 0, 500, None)]
    cluster.load(
        "gpu_instances",
        [{"cluster": cluster.name, "gpu_uuid": "m#0", "gpu_instance": f"{profile}.0",
          "profile": profile, "compute_slices": slices, "slurm_index": index,
          "valid_from_at": cluster.at(start), "valid_to_at": cluster.at(end)}
         for profile, slices, index, start, end in layout],
        "inventory",
    )  # fmt: skip
    cluster.watched(1000)
    cluster.job("1", 600, 700, ["m"], 1, gpu_type="7g.80gb")
    yield
    assert cluster.gpu_s() == {"idle_no_demand": 900, "unknown": 100}


def pods(cluster, starts, job="1"):
    """Hold one GPU on node a from each of these seconds on, for job run `job`."""
    cluster.load(
        "holds",
        [{"cluster": cluster.name, "job_id_raw": job, "submit_at": cluster.at(0), "node": "a",
          "gpu_uuid": f"{cluster.name}/a#{i}", "method": "pod", "start_at": cluster.at(start)}
         for i, start in enumerate(starts)],
    )  # fmt: skip


@built_together
def test_a_gang_waits_until_the_last_of_its_parts_has_its_gpu(cluster):
    """Three GPUs from 0 s, the fourth from 60 s on: 180 GPU-s of waiting, and 60 GPU-s free."""
    cluster.node("a", 4)
    cluster.watched(200)
    cluster.job("1", 0, 200, ["a"], 4)
    pods(cluster, [0, 0, 0, 60])
    yield
    assert cluster.gpu_s() == {"gang_wait": 180, "idle_no_demand": 60, "unknown": 4 * 140}


@built_together
def test_a_gang_that_never_gets_all_it_asked_for_waits_to_the_end(cluster):
    cluster.node("a", 4)
    cluster.watched(200)
    cluster.job("1", 0, None, ["a"], 2, "RUNNING", gpus_requested=4)
    pods(cluster, [0, 10])
    yield
    assert cluster.gpu_s() == {"gang_wait": 390, "idle_no_demand": 410}


@built_together
def test_waiting_for_the_gang_comes_before_what_the_job_says_of_that_time(cluster):
    cluster.node("a", 2)
    cluster.watched(200)
    cluster.job("1", 0, 200, ["a"], 2)
    cluster.events("1", [{"event": "job.start", "t": 0}, {"event": "job.end", "t": 200}])
    pods(cluster, [0, 50])
    yield
    assert cluster.gpu_s()["gang_wait"] == 50
    assert sum(cluster.gpu_s().values()) == 400


@built_together
def test_gpus_that_only_the_scheduler_knows_have_the_model_that_it_names(cluster):
    cluster.job("1", 0, 3600, ["a"], 2, gpu_type="h100")
    cluster.job("2", 3600, 7200, ["a"], 2)
    cluster.load("rates", [{"cluster": cluster.name, "gpu_model": "H100", "price_per_gpu_h": 2.5}])
    yield
    row = cluster.read("from marts.ledger_by_category where gpu_ms > 0").row(0, named=True)
    assert (row["cost"], row["unpriced_gpu_ms"]) == (pytest.approx(10.0), 0)
