"""What scheduler, inventory and telemetry say, rule by rule."""

from __future__ import annotations

import pytest


def test_idle_free_time_without_node_evidence_is_unknown_not_idle(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 10, ["a"], 1)
    evidence.job("2", 20, 30, ["a"], 1)

    assert evidence.gpu_s() == {"unknown": 20, "free_unknown": 10}


def test_a_held_gpu_is_never_down(evidence):
    evidence.node("a", 1)
    evidence.watched(100)
    evidence.state("a", "down", 0, 100)
    evidence.job("1", 20, 60, ["a"], 1)

    assert evidence.gpu_s() == {"down": 60, "unknown": 40}


def test_down_comes_before_maintenance_and_drained(evidence):
    evidence.node("a", 1)
    evidence.watched(100)
    evidence.state("a", "drained", 0, 60)
    evidence.state("a", "maintenance", 20, 60)
    evidence.state("a", "down", 40, 60)

    assert evidence.gpu_s() == {"drained": 20, "maintenance": 20, "down": 20, "idle_no_demand": 40}


def test_a_reservation_nobody_uses_is_its_owners(evidence):
    evidence.node("a", 2)
    evidence.watched(100)
    evidence.load(
        "reservations",
        [{"cluster": "c", "name": "r", "nodes": ["a"], "owner": "nlp",
          "start_at": evidence.at(0), "end_at": evidence.at(50)}],
    )  # fmt: skip

    assert evidence.gpu_s() == {"reserved_idle": 100, "idle_no_demand": 100}


def test_gpus_of_a_node_whose_cpus_are_all_held_are_stranded(evidence):
    evidence.node("a", 4)
    evidence.load("nodes", [{"cluster": "c", "node": "a", "cpus": 16, "partitions": ["p"]}])
    evidence.watched(100)
    evidence.job("1", 0, 50, ["a"], 1, cpus=16)

    found = evidence.gpu_s()

    assert found == {"unknown": 50, "stranded": 150, "idle_no_demand": 200}


def test_demand_counts_from_eligible_not_from_submit(evidence):
    evidence.node("a", 2, partitions=("p",))
    evidence.watched(100)
    evidence.job("1", 60, 100, ["a"], 2, submit=0, eligible=40, partition="p", gpus_requested=2)

    assert evidence.gpu_s() == {"idle_no_demand": 80, "idle_with_demand": 40, "unknown": 80}


def test_busy_then_idle_is_one_gap_not_an_average(evidence):
    """Five minutes of work, then ten hours of nothing."""
    evidence.node("a", 1)
    evidence.job("1", 0, 36_300, ["a"], 1)
    evidence.samples("a#0", evidence.every(-10, 36_300), lambda s: s <= 300)

    assert evidence.gpu_s() == {"busy_unclassified": 300, "idle_held": 36_000}
    gap = evidence.store.read("select gap_s, category from marts.idle_gaps where is_held").rows()
    assert gap == [(36_000.0, "idle_held")]


def test_a_gpu_that_does_nothing_while_its_job_steps_is_found(evidence, job_events):
    """The ledger counts its time with the steps: job events cover all GPUs of the job."""
    evidence.node("a", 2)
    evidence.job("1", 0, 1000, ["a"], 2)
    evidence.events("1", [*job_events.steps(1, 100, 0), job_events.durable(100, 1000)])
    evidence.samples("a#0", evidence.every(-10, 1000), lambda _: True)
    evidence.samples("a#1", evidence.every(-10, 1000), lambda s: not (50 < s <= 150 or s > 400))

    assert evidence.gpu_s() == {"step_unsplit": 2000}
    found = evidence.store.read(
        "select gap_s, is_beside_work, cause, evidence from marts.idle_gaps where is_held "
        "order by start_at"
    )

    proof = (
        "no activity in {} % of the gap, the part that readings cover; 100 % of it is "
        "Training step (communication not measured) in the ledger"
    )
    # less than 300 s may be a pause
    assert found.rows() == [
        (110.0, False, None, proof.format(91)),
        (600.0, True, "Unused by its job", proof.format(100)),
    ]


def test_less_than_300_s_of_no_activity_is_not_called_idle(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    evidence.samples("a#0", evidence.every(-10, 1000), lambda s: not 400 < s <= 690)

    found = evidence.gpu_s()

    assert found["busy_unclassified"] == 1000
    phases = evidence.store.read(
        "select phase, sum(gpu_ms)::bigint from marts.ledger_scoped "
        "where phase is not null group by all"
    )
    assert phases.rows() == [("short_idle", 290_000)]


def test_a_hole_in_the_readings_is_unknown_not_idle(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    evidence.samples(
        "a#0", [*evidence.every(-10, 200), *evidence.every(800, 1000)], lambda _: False
    )

    # each reading covers back at most 2.5 intervals of 10 s
    assert evidence.gpu_s()["unknown"] == 1000 - 200 - (200 + 25)


def test_a_broken_profiling_share_is_no_reading(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    evidence.samples("a#0", evidence.every(-10, 1000), lambda s: None if s % 100 == 0 else 1.0)

    # the reading after a broken one covers back over it; none comes after the last
    assert evidence.gpu_s() == {"busy_unclassified": 990, "unknown": 10}


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


def test_a_job_the_controller_forgot_holds_its_gpu_until_the_node_goes_down(evidence):
    evidence.node("a", 1)
    evidence.watched(1000)
    evidence.state("a", "down", 300, 1000)
    evidence.job("1", 0, None, ["a"], 1, "RUNNING")

    assert evidence.gpu_s() == {"unknown": 300, "down": 700}


def test_parts_of_a_mig_gpu_count_with_their_share_and_the_rest_is_stranded(evidence):
    evidence.node("m", 1)
    evidence.load(
        "gpu_instances",
        [{"cluster": "c", "gpu_uuid": "m#0", "gpu_instance": "3g.40gb.0", "profile": "3g.40gb",
          "compute_slices": 3, "slurm_index": 0}],
    )  # fmt: skip
    evidence.watched(7000)
    evidence.job("1", 0, 7000, ["m"], 1, gpu_type="3g.40gb")

    assert evidence.gpu_s() == {"unknown": 3000, "stranded": 4000}


def test_an_hour_without_a_price_is_unpriced_and_never_zero(evidence):
    evidence.node("a", 1, model="h100")
    evidence.job("1", 0, 7200, ["a"], 1)
    evidence.load(
        "rates",
        [{"gpu_model": "H100", "price_per_gpu_h": 2.5, "valid_to_at": evidence.at(3600)}],
    )

    evidence.store.build()

    row = evidence.store.read("select * from marts.ledger_by_category where gpu_ms > 0").row(
        0, named=True
    )
    assert row["cost"] == pytest.approx(2.5)
    assert row["unpriced_gpu_ms"] == 3_600_000
    cost = evidence.store.read("select * from marts.cost_per_gpu_hour").row(0, named=True)
    assert cost["price_per_gpu_h"] == pytest.approx(2.5)
    assert cost["cost_per_allocated_gpu_h"] is None


def test_a_first_reading_covers_nothing(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.samples("a#0", evidence.every(40, 100), lambda _: True)

    assert evidence.gpu_s() == {"unknown": 40, "busy_unclassified": 60}


def test_a_running_job_holds_as_long_as_its_record_says_it_has_run(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=140, suspended_s=10)

    assert evidence.gpu_s() == {"unknown": 150}


def test_free_time_that_nobody_watched_is_not_called_waste(evidence):
    evidence.node("a", 2)
    evidence.job("1", 0, 100, ["a"], 1)

    summary = evidence.summary()

    assert summary["free_ms"] == 100_000
    assert summary["wasted_ms"] == 0


def test_work_that_no_job_accounts_for_is_reported(evidence):
    evidence.node("a", 1)
    evidence.node("b", 1)
    evidence.job("1", 0, 100, ["b"], 1)  # without a scheduler the work would be somebody's
    evidence.samples("a#0", evidence.every(0, 100), lambda _: True)

    evidence.store.build()

    found = evidence.store.read(
        "select n, gpu_ms from marts.data_quality where kind = 'busy with no job'"
    )
    assert found.rows() == [(1, 100_000)]


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


def test_a_replaced_gpu_breaks_no_hold(evidence):
    rows = [(f"GPU-{i}", i, 0, 500 if i == 3 else None) for i in range(8)] + [
        ("GPU-9", 3, 500, None)
    ]
    evidence.load(
        "gpus",
        [{"cluster": "c", "node": "a", "gpu_uuid": uuid, "slurm_index": index, "gpu_model": "h100",
          "valid_from_at": evidence.at(start), "valid_to_at": evidence.at(end)}
         for uuid, index, start, end in rows],
        "inventory",
    )  # fmt: skip
    evidence.watched(1000)
    evidence.job("1", 0, 400, ["a"], 8)
    evidence.job("2", 500, 900, ["a"], 8, submit=500)

    assert evidence.gpu_s() == {"unknown": 6400, "idle_no_demand": 1600}


def test_a_gpu_that_moves_counts_for_each_node_while_it_is_there(evidence):
    evidence.load(
        "gpus",
        [{"cluster": "c", "node": node, "gpu_uuid": "GPU-0", "slurm_index": 0, "gpu_model": "h100",
          "valid_from_at": evidence.at(start)} for node, start in (("a", 0), ("b", 500))],
        "inventory",
    )  # fmt: skip
    evidence.watched(1000)

    evidence.store.build()

    rows = evidence.store.read(
        "select node, sum(gpu_ms)::bigint from marts.ledger_scoped group by 1 order by 1"
    )
    assert rows.rows() == [("a", 500_000), ("b", 500_000)]


def test_two_sources_that_name_one_gpu_name_one_hold(evidence):
    evidence.node("a", 2)
    evidence.watched(100)
    evidence.job("1", 0, 100, ["a"], 2)
    for source in ("dcgm", "prometheus"):
        evidence.load(
            "holds",
            [{"cluster": "c", "job_id_raw": "1", "submit_at": evidence.at(0), "node": "a",
              "gpu_uuid": f"c/a#{i}", "method": "hpc_job"} for i in range(2)],
            source,
        )  # fmt: skip

    assert evidence.gpu_s() == {"unknown": 200}


def test_an_a10_price_is_not_an_a100s(evidence):
    evidence.node("a", 1, model="NVIDIA A100-SXM4-80GB")
    evidence.job("1", 0, 3600, ["a"], 1)
    evidence.load(
        "rates", [{"gpu_model": m, "price_per_gpu_h": p} for m, p in (("A10", 1), ("A100", 3))]
    )

    assert evidence.summary()["capacity_cost"] == pytest.approx(3)


def test_a_gpu_repartitioned_still_counts_once(evidence):
    """3g + 4g for 500 s, then 7g: 1,000 s of one GPU."""
    evidence.node("m", 1)
    layout = [("3g.40gb", 3, 0, 0, 500), ("4g.40gb", 4, 1, 0, 500), ("7g.80gb", 7, 0, 500, None)]
    evidence.load(
        "gpu_instances",
        [{"cluster": "c", "gpu_uuid": "m#0", "gpu_instance": f"{profile}.0", "profile": profile,
          "compute_slices": slices, "slurm_index": index, "valid_from_at": evidence.at(start),
          "valid_to_at": evidence.at(end)} for profile, slices, index, start, end in layout],
        "inventory",
    )  # fmt: skip
    evidence.watched(1000)
    evidence.job("1", 600, 700, ["m"], 1, gpu_type="7g.80gb")

    assert evidence.gpu_s() == {"idle_no_demand": 900, "unknown": 100}


def pods(evidence, starts, job="1"):
    """Hold one GPU on node a from each of these seconds on, for job run `job`."""
    evidence.load(
        "holds",
        [{"cluster": "c", "job_id_raw": job, "submit_at": evidence.at(0), "node": "a",
          "gpu_uuid": f"c/a#{i}", "method": "pod", "start_at": evidence.at(start)}
         for i, start in enumerate(starts)],
    )  # fmt: skip


def test_a_gang_waits_until_the_last_of_its_parts_has_its_gpu(evidence):
    """Three GPUs from 0 s, the fourth from 60 s on: 180 GPU-s of waiting, and 60 GPU-s free."""
    evidence.node("a", 4)
    evidence.watched(200)
    evidence.job("1", 0, 200, ["a"], 4)
    pods(evidence, [0, 0, 0, 60])

    assert evidence.gpu_s() == {"gang_wait": 180, "idle_no_demand": 60, "unknown": 4 * 140}


def test_a_gang_that_never_gets_all_it_asked_for_waits_to_the_end(evidence):
    evidence.node("a", 4)
    evidence.watched(200)
    evidence.job("1", 0, None, ["a"], 2, "RUNNING", gpus_requested=4)
    pods(evidence, [0, 10])

    assert evidence.gpu_s() == {"gang_wait": 390, "idle_no_demand": 410}


def test_waiting_for_the_gang_comes_before_what_the_job_says_of_that_time(evidence):
    evidence.node("a", 2)
    evidence.watched(200)
    evidence.job("1", 0, 200, ["a"], 2)
    evidence.events("1", [{"event": "job.start", "t": 0}, {"event": "job.end", "t": 200}])
    pods(evidence, [0, 50])

    assert evidence.gpu_s()["gang_wait"] == 50
    assert sum(evidence.gpu_s().values()) == 400


@pytest.mark.parametrize("start", [105, 95], ids=["begins", "ends"])
def test_a_job_that_begins_or_ends_between_two_readings_is_no_work_without_a_job(evidence, start):
    evidence.node("a", 1)
    evidence.job("1", *((105, 200) if start == 105 else (0, 95)), ["a"], 1)
    evidence.samples("a#0", evidence.every(0, 200), lambda s: s > 100 if start == 105 else s <= 100)

    evidence.store.build()

    found = evidence.store.read("select n from marts.data_quality where kind = 'busy with no job'")
    assert found.rows() == []


def test_gpus_that_only_the_scheduler_knows_have_the_model_that_it_names(evidence):
    evidence.job("1", 0, 3600, ["a"], 2, gpu_type="h100")
    evidence.job("2", 3600, 7200, ["a"], 2)
    evidence.load("rates", [{"gpu_model": "H100", "price_per_gpu_h": 2.5}])

    evidence.store.build()

    row = evidence.store.read("from marts.ledger_by_category where gpu_ms > 0").row(0, named=True)
    assert (row["cost"], row["unpriced_gpu_ms"]) == (pytest.approx(10.0), 0)
