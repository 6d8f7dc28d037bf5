"""MIG instances: telemetry knows them by id, schedulers by profile and number."""

from __future__ import annotations

import polars as pl
import pytest

from goodput_queries.check import check

GPU = "GPU-c2d0e8aa-55f1-4b6e-8a7d-20f3b1c4d5e6"
OTHER = "GPU-5b1f7c66-90ad-4c1e-b2f8-6a4d3e2c1b0a"


def cut(evidence, source, gpu, parts, start=None, end=None, **more):
    """Load instances of a GPU: (instance, profile, index of the scheduler)."""
    evidence.load(
        "gpu_instances",
        [
            {
                "cluster": "c", "gpu_uuid": gpu, "gpu_instance": instance, "profile": profile,
                "compute_slices": int(profile[0]), "slurm_index": index,
                "valid_from_at": evidence.at(start) if start is not None else None,
                "valid_to_at": evidence.at(end) if end is not None else None, **more,
            }
            for instance, profile, index in parts
        ],
        source,
    )  # fmt: skip


def gpu(evidence, source, uuid, index, node="m", start=0):
    evidence.load(
        "gpus",
        [
            {
                "cluster": "c", "node": node, "gpu_uuid": uuid, "gpu_index": index,
                "gpu_model": "h100", "valid_from_at": evidence.at(start),
            }
        ],
        source,
    )  # fmt: skip


def readings(evidence, uuid, instance, seconds, active):
    evidence.load(
        "gpu_samples",
        [
            {
                "gpu_uuid": uuid, "gpu_instance": instance, "ts": evidence.at(second),
                "engine_active_ratio": 0.9 * active, "is_flagged": False,
            }
            for second in seconds
        ],
        "dcgm",
    )  # fmt: skip


def by_instance(evidence):
    """Return GPU-seconds by instance and category."""
    evidence.store.build()
    assert check(evidence.store)["violations"].sum() == 0
    rows = evidence.store.read(
        "select gpu_instance, category, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all"
    )
    return {(instance, category): seconds for instance, category, seconds in rows.rows()}


def test_readings_of_instances_are_those_of_the_parts_telemetry_reports(evidence):
    gpu(evidence, "dcgm", GPU, 0)
    cut(evidence, "dcgm", GPU, [("1", "4g.40gb", None), ("2", "3g.40gb", None)], 0)
    evidence.watched(1000)
    evidence.job("1", 0, 1000, ["m"], 2)
    readings(evidence, GPU, "1", evidence.every(0, 1000), active=True)
    readings(evidence, GPU, "2", evidence.every(0, 1000), active=False)

    assert by_instance(evidence) == {
        ("1", "busy_unclassified"): pytest.approx(1000 * 4 / 7, abs=0.001),
        ("2", "idle_held"): pytest.approx(1000 * 3 / 7, abs=0.001),
    }


def test_a_job_that_began_before_the_first_reading_held_an_instance_from_its_start(evidence):
    """How a GPU is cut when it is seen first is how it was cut before."""
    gpu(evidence, "dcgm", GPU, 0, start=60)
    cut(evidence, "dcgm", GPU, [("1", "4g.40gb", None), ("2", "3g.40gb", None)], 60)
    evidence.job("1", 0, 700, ["m"], 2)

    assert evidence.gpu_s() == {"unknown": 700}
    assert check(evidence.store)["violations"].sum() == 0


def test_an_instance_that_stays_when_others_are_repartitioned_stays_one_part(evidence):
    """The layout is reported again at 500 s; the job on instance 1 continues over that."""
    gpu(evidence, "nvml", GPU, 0)
    cut(evidence, "nvml", GPU, [("1", "4g.40gb", None), ("2", "3g.40gb", None)], 0, 500)
    cut(evidence, "nvml", GPU, [("1", "4g.40gb", None), ("9", "1g.10gb", None)], 500)
    evidence.watched(700)
    evidence.job("1", 0, 700, ["m"], 1, gpu_type="4g.40gb")

    assert by_instance(evidence) == {
        ("1", "unknown"): 400,
        ("2", "idle_no_demand"): pytest.approx(500 * 3 / 7, abs=0.001),
        ("9", "idle_no_demand"): pytest.approx(200 * 1 / 7, abs=0.001),
        ("rest", "stranded"): pytest.approx(200 * 2 / 7, abs=0.001),
    }


def test_a_collector_that_starts_while_the_layout_is_the_same_changes_nothing(evidence):
    gpu(evidence, "nvml", GPU, 0)
    parts = [("1", "4g.40gb", None), ("2", "3g.40gb", None)]
    cut(evidence, "nvml", GPU, parts, 0)
    cut(evidence, "nvml", GPU, parts, 300)
    evidence.job("1", 0, 700, ["m"], 2)

    assert evidence.gpu_s() == {"unknown": 700}
    rows = evidence.store.read("select gpu_instance, start_ms from intermediate.int_gpu_units")
    assert rows.height == 2


@pytest.mark.parametrize("slot", [GPU, "m#0"])
@pytest.mark.parametrize("source", ["inventory", "slurm"])
def test_names_of_an_inventory_meet_the_ids_of_telemetry(evidence, source, slot):
    """Within a profile both go by number: 1g.10gb.0 is the lowest id among those."""
    gpu(evidence, "dcgm", GPU, 0)
    if slot == GPU:
        gpu(evidence, source, GPU, 0)
    else:
        evidence.load(
            "gpus",
            [{"cluster": "c", "node": "m", "gpu_uuid": slot, "slurm_index": 0}],
            source,
        )
    cut(
        evidence, source, slot,
        [("3g.40gb.0", "3g.40gb", 2), ("1g.10gb.0", "1g.10gb", 0), ("1g.10gb.1", "1g.10gb", 1)],
    )  # fmt: skip
    cut(
        evidence, "dcgm", GPU,
        [("11", "1g.10gb", None), ("2", "3g.40gb", None), ("9", "1g.10gb", None)], 0,
    )  # fmt: skip
    evidence.watched(700)
    evidence.job("1", 0, 700, ["m"], 1)
    evidence.load(
        "holds",
        [{"cluster": "c", "job_id_raw": "1", "submit_at": evidence.at(0), "node": "m",
          "slurm_index": 1, "method": "scontrol"}],
    )  # fmt: skip
    readings(evidence, GPU, "9", evidence.every(0, 700), active=False)
    readings(evidence, GPU, "11", evidence.every(0, 700), active=True)

    found = by_instance(evidence)

    assert {c: s for (i, c), s in found.items() if i == "11"} == {"busy_unclassified": 100}
    assert set(found) == {
        ("11", "busy_unclassified"), ("9", "idle_no_demand"), ("2", "idle_no_demand"),
        ("rest", "stranded"),
    }  # fmt: skip
    assert sum(found.values()) == pytest.approx(700, abs=0.001)


def test_an_odd_name_among_the_ids_of_one_source_is_a_part_of_its_own(evidence):
    gpu(evidence, "dcgm", GPU, 0)
    cut(evidence, "dcgm", GPU, [("1", "3g.40gb", None), ("null", "3g.40gb", None)], 0)
    evidence.watched(700)

    found = by_instance(evidence)

    assert {instance for instance, _ in found} == {"1", "null", "rest"}
    assert sum(found.values()) == pytest.approx(700, abs=0.001)


def test_an_instance_with_a_number_that_none_can_have_stops_no_build(evidence):
    gpu(evidence, "dcgm", GPU, 0)
    cut(evidence, "dcgm", GPU, [("9223372036854775808", "1g.10gb", None)], 0)
    evidence.watched(700)

    found = by_instance(evidence)

    assert sum(found.values()) == pytest.approx(700, abs=0.001)


def test_slots_of_a_cut_node_give_way_though_they_are_numbered_by_instances(evidence):
    """A scheduler counts instances: the second GPU's slot is number 2, its index is 1."""
    other = "GPU-1a9d7b44-8c3e-4f02-b6d1-77aa90c1de21"
    for index, uuid in enumerate((GPU, other)):
        gpu(evidence, "dcgm", uuid, index)
        cut(evidence, "dcgm", uuid, [("1", "4g.40gb", None), ("2", "3g.40gb", None)], 0)
        evidence.load(
            "gpus",
            [{"cluster": "c", "node": "m", "gpu_uuid": f"m#{2 * index}",
              "slurm_index": 2 * index}],
            "slurm",
        )  # fmt: skip
        cut(
            evidence, "slurm", f"m#{2 * index}",
            [(f"4g.40gb.{index}", "4g.40gb", 2 * index),
             (f"3g.40gb.{index}", "3g.40gb", 2 * index + 1)],
        )  # fmt: skip
    evidence.watched(700)
    evidence.job("1", 0, 700, ["m"], 1)
    evidence.load(
        "holds",
        [{"cluster": "c", "job_id_raw": "1", "submit_at": evidence.at(0), "node": "m",
          "slurm_index": 3, "method": "scontrol"}],
    )  # fmt: skip

    evidence.store.build()

    assert check(evidence.store)["violations"].sum() == 0
    held = evidence.store.read("select gpu_uuid, gpu_instance from intermediate.int_holds").rows()
    assert held == [(other, "2")]
    gpus = evidence.store.read("select gpu_uuid from intermediate.int_gpu_inventory order by 1")
    assert gpus.to_series().to_list() == [other, GPU]


def test_an_inventory_that_says_otherwise_has_the_last_word(evidence):
    gpu(evidence, "dcgm", GPU, 0)
    gpu(evidence, "inventory", GPU, 0)
    cut(evidence, "inventory", GPU, [("7g.80gb.0", "7g.80gb", 0)])
    cut(evidence, "dcgm", GPU, [("1", "4g.40gb", None), ("2", "3g.40gb", None)], 0)
    evidence.job("1", 0, 700, ["m"], 1)

    evidence.store.build()

    units = evidence.store.read("select gpu_instance from intermediate.int_gpu_units")
    assert units.equals(pl.DataFrame({"gpu_instance": ["7g.80gb.0"]}))


def test_an_inventory_with_the_numbers_of_the_scheduler_names_its_gpus_past_cut_ones(evidence):
    halves = ("3g.40gb.0", "3g.40gb.1")
    for uuid, number, is_told_by in ((GPU, 0, "inventory"), (OTHER, 2, "inventory")):
        evidence.load(
            "gpus",
            [
                {
                    "cluster": "c", "node": "m", "gpu_uuid": uuid, "gpu_index": number // 2,
                    "slurm_index": number, "gpu_model": "h100",
                }
            ],
            is_told_by,
        )  # fmt: skip
        for source, whose in (("inventory", uuid), ("slurm", f"m#{number}")):
            parts = [(h, "3g.40gb", number + i) for i, h in enumerate(halves)]
            cut(evidence, source, whose, parts)
        evidence.load(
            "gpus",
            [{"cluster": "c", "node": "m", "gpu_uuid": f"m#{number}", "slurm_index": number}],
            "slurm",
        )
    evidence.watched(1000)
    evidence.store.build()

    rows = evidence.store.read("select distinct gpu_uuid from intermediate.int_gpu_units")
    assert set(rows["gpu_uuid"]) == {GPU, OTHER}


@pytest.mark.parametrize("order", [1, -1])
def test_instances_beyond_a_whole_gpu_are_left_out_and_named(evidence, order):
    """A listing with more than seven slices is wrong: what does not fit is no part of the GPU."""
    gpu(evidence, "dcgm", GPU, 0)
    parts = [("1", "4g.40gb", None), ("2", "3g.40gb", None), ("3", "2g.20gb", None)]
    cut(evidence, "dcgm", GPU, [*parts, ("0", "9g.90gb", None)][::order], 0)
    evidence.watched(700)
    evidence.job("1", 0, 700, ["m"], 2)
    for instance, _, _ in parts:
        readings(evidence, GPU, instance, evidence.every(0, 700), active=True)

    found = by_instance(evidence)

    assert set(found) == {("1", "busy_unclassified"), ("2", "busy_unclassified")}
    assert sum(found.values()) == pytest.approx(700, abs=0.001)
    finding = evidence.store.read(
        "select n, example from marts.data_quality where kind = 'instances beyond a whole GPU'"
    )
    assert finding.rows() == [(2, f"{GPU}/0 (9g.90gb)")]


def test_an_instance_that_does_not_fit_beside_one_that_stays_is_left_out(evidence):
    gpu(evidence, "nvml", GPU, 0)
    evidence.watched(700)
    cut(evidence, "nvml", GPU, [("1", "4g.40gb", None), ("2", "3g.40gb", None)], 0, 300)
    cut(evidence, "nvml", GPU, [("1", "4g.40gb", None), ("5", "4g.40gb", None)], 300)

    found = by_instance(evidence)

    assert {instance for instance, _ in found} == {"1", "2", "rest"}
    assert found["rest", "stranded"] == pytest.approx(400 * 3 / 7, abs=0.001)


def test_an_instance_that_is_listed_again_before_its_end_is_counted_once(evidence):
    """Late listings can overlap: the earlier one ends where the next begins."""
    gpu(evidence, "dcgm", GPU, 0)
    evidence.watched(700)
    cut(evidence, "dcgm", GPU, [("1", "3g.40gb", None)], 0, 400)
    cut(evidence, "dcgm", GPU, [("1", "3g.40gb", None)], 300)
    cut(evidence, "dcgm", GPU, [("2", "3g.40gb", None)], 0)

    found = by_instance(evidence)

    by_part = {part: sum(s for (p, _), s in found.items() if p == part) for part in ("1", "2")}
    # the listing from 300 s on has no second instance
    assert by_part == pytest.approx({"1": 300, "2": 300 * 3 / 7}, abs=0.001)
    assert check(evidence.store)["violations"].sum() == 0
