"""MIG instances: telemetry knows them by id, schedulers by profile and number."""

import pytest
from tests.queries.conftest import shown_by

GPU = "GPU-c2d0e8aa-55f1-4b6e-8a7d-20f3b1c4d5e6"
FOUR_THREE = [("1", "4g.40gb", None), ("2", "3g.40gb", None)]
OTHER = "GPU-5b1f7c66-90ad-4c1e-b2f8-6a4d3e2c1b0a"


def gpu_id(cluster, name):
    """Return the identifier of a GPU, of which there is one in all clusters; slots stay."""
    return name if "#" in name else f"{name}-{cluster.name}"


def cut(cluster, source, gpu, parts, start=None, end=None):
    """Load instances of a GPU: (instance, profile, index of the scheduler)."""
    rows = [{"gpu_instance": instance, "profile": profile, "slurm_index": index,
             "compute_slices": int(profile[0])} for instance, profile, index in parts]  # fmt: skip
    cluster.add("gpu_instances", *rows, source=source, gpu_uuid=gpu_id(cluster, gpu),
                valid_from_at=start, valid_to_at=end)  # fmt: skip


def gpu(cluster, source, uuid, index, start=0):
    cluster.listed("m", gpu_id(cluster, uuid), source, gpu_index=index, valid_from_at=start)


def slot(cluster, source, uuid, number, **more):
    """Load a GPU by the number that the scheduler gives it."""
    cluster.add("gpus", source=source, node="m", gpu_uuid=uuid, slurm_index=number, **more)


def readings(cluster, uuid, instance, until, active):
    use = {"gpu_instance": instance, "engine_active_ratio": 0.9 * active}
    cluster.readings(gpu_id(cluster, uuid), cluster.every(0, until), **use)


def by_instance(cluster):
    """Return GPU-seconds by instance and category."""
    sql = "select gpu_instance, category, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all"
    rows = cluster.read(sql)
    return {(instance, category): seconds for instance, category, seconds in rows.rows()}


def one(source, parts, start=0, end=None, seen=0):
    """Return what loads the instances of a GPU that a source lists."""
    return lambda c: [gpu(c, source, GPU, 0, seen), cut(c, source, GPU, parts, start, end)]


def job(gpus, kind=None):
    return lambda c: c.job("1", 0, 700, ["m"], gpus, gpu_type=kind)


def read(instance, *, active):
    return lambda c: readings(c, GPU, instance, 700, active)


ALL_700 = [("1", "4g.40gb", None), ("2", "3g.40gb", None), ("3", "2g.20gb", None)]
TOO_MANY = [*ALL_700, ("0", "9g.90gb", None)]
TWO_BUSY = {("1", "busy_unclassified"): 400, ("2", "busy_unclassified"): 300}
HUGE = "9223372036854775808"
# what it shows: what is loaded, GPU-seconds of 700 s by instance and category
test_instances_of_a_gpu = shown_by({
    "readings of instances are those of the parts that telemetry reports": (
        [one("dcgm", FOUR_THREE), job(2), read("1", active=True), read("2", active=False)],
        {("1", "busy_unclassified"): 400, ("2", "idle_held"): 300}),
    "of seven slices one is used, and six sevenths are idle": (
        [one("dcgm", [(n, "1g.10gb", None) for n in "1234567"]), job(1), read("1", active=True)],
        {("1", "busy_unclassified"): 100, **{(n, "idle_no_demand"): 100 for n in "234567"}}),
    # how a GPU is cut when it is seen first is how it was cut before
    "a job that began before the first reading held an instance from its start": (
        [one("dcgm", FOUR_THREE, 60, seen=60), job(2)],
        {("1", "unknown"): 400, ("2", "unknown"): 300}),
    "one that stays when others are repartitioned stays one part": (
        [one("nvml", FOUR_THREE, 0, 500), job(1, "4g.40gb"),
         one("nvml", [("1", "4g.40gb", None), ("9", "1g.10gb", None)], 500)],
        {("1", "unknown"): 400, ("2", "idle_no_demand"): 500 * 3 / 7,
         ("9", "idle_no_demand"): 200 * 1 / 7, ("rest", "stranded"): 200 * 2 / 7}),
    "one that does not fit beside one that stays is left out": (
        [one("nvml", FOUR_THREE, 0, 300),
         one("nvml", [("1", "4g.40gb", None), ("5", "4g.40gb", None)], 300)],
        {("1", "idle_no_demand"): 400, ("2", "idle_no_demand"): 300 * 3 / 7,
         ("rest", "stranded"): 400 * 3 / 7}),
    # late listings can overlap: the earlier one ends where the next, without the second, begins
    "one that is listed again before its end is counted once": (
        [one("nvml", [("1", "3g.40gb", None)], 0, 400), one("nvml", [("1", "3g.40gb", None)], 300),
         one("nvml", [("2", "3g.40gb", None)])],
        {("1", "idle_no_demand"): 300, ("2", "idle_no_demand"): 300 * 3 / 7,
         ("rest", "stranded"): 300 * 1 / 7 + 400 * 4 / 7}),
    "a name that is no number is a part of its own": (
        [one("dcgm", [("1", "3g.40gb", None), ("null", "3g.40gb", None)])],
        {("1", "idle_no_demand"): 300, ("null", "idle_no_demand"): 300, ("rest", "stranded"): 100}),
    "so is a number that none can have": (
        [one("dcgm", [(HUGE, "1g.10gb", None)])],
        {(HUGE, "idle_no_demand"): 100, ("rest", "stranded"): 600}),
    "an inventory that says otherwise has the last word": (
        [one("inventory", [("7g.80gb.0", "7g.80gb", 0)], None), one("dcgm", FOUR_THREE), job(1)],
        {("7g.80gb.0", "unknown"): 700}),
    # a listing with more than seven slices is wrong
    "instances beyond a whole GPU are left out": (
        [one("dcgm", TOO_MANY), job(2), *(read(part[0], active=True) for part in ALL_700)],
        TWO_BUSY),
    "the same in another order": (
        [one("dcgm", TOO_MANY[::-1]), job(2), *(read(part[0], active=True) for part in ALL_700)],
        TWO_BUSY),
}, before=lambda c: c.watched(700), load=lambda c, loads: [load(c) for load in loads],
    read=lambda c: pytest.approx(by_instance(c), abs=0.001))  # fmt: skip


@pytest.mark.parametrize("place", [GPU, "m#0"])
@pytest.mark.parametrize("source", ["inventory", "slurm"])
def test_names_of_an_inventory_meet_the_ids_of_telemetry(cluster, source, place):
    """Within a profile both go by number: 1g.10gb.0 is the lowest id among those."""
    gpu(cluster, "dcgm", GPU, 0)
    if place == GPU:
        gpu(cluster, source, GPU, 0)
    else:
        slot(cluster, source, place, 0)
    cut(cluster, source, place,
        [("3g.40gb.0", "3g.40gb", 2), ("1g.10gb.0", "1g.10gb", 0),
         ("1g.10gb.1", "1g.10gb", 1)])  # fmt: skip
    cut(cluster, "dcgm", GPU,
        [("11", "1g.10gb", None), ("2", "3g.40gb", None), ("9", "1g.10gb", None)], 0)  # fmt: skip
    cluster.watched(700)
    cluster.job("1", 0, 700, ["m"], 1)
    cluster.hold("1", node="m", slurm_index=1)
    readings(cluster, GPU, "9", 700, active=False)
    readings(cluster, GPU, "11", 700, active=True)
    yield
    found = by_instance(cluster)

    assert {c: s for (i, c), s in found.items() if i == "11"} == {"busy_unclassified": 100}
    assert set(found) == {("11", "busy_unclassified"), ("9", "idle_no_demand"),
                          ("2", "idle_no_demand"), ("rest", "stranded")}  # fmt: skip
    assert sum(found.values()) == pytest.approx(700, abs=0.001)


def test_slots_of_a_cut_node_give_way_though_they_are_numbered_by_instances(cluster):
    """A scheduler counts instances: the second GPU's slot is number 2, its index is 1."""
    other = "GPU-1a9d7b44-8c3e-4f02-b6d1-77aa90c1de21"
    for index, uuid in enumerate((GPU, other)):
        gpu(cluster, "dcgm", uuid, index)
        cut(cluster, "dcgm", uuid, FOUR_THREE, 0)
        slot(cluster, "slurm", f"m#{2 * index}", 2 * index)
        cut(cluster, "slurm", f"m#{2 * index}",
            [(f"4g.40gb.{index}", "4g.40gb", 2 * index),
             (f"3g.40gb.{index}", "3g.40gb", 2 * index + 1)])  # fmt: skip
    cluster.watched(700)
    cluster.job("1", 0, 700, ["m"], 1)
    cluster.hold("1", node="m", slurm_index=3)
    yield
    held = cluster.own("gpu_uuid, gpu_instance", "intermediate.int_holds")
    assert held == [(gpu_id(cluster, other), "2")]
    gpus = cluster.own("gpu_uuid", "intermediate.int_gpu_inventory")
    assert gpus == [(gpu_id(cluster, other),), (gpu_id(cluster, GPU),)]


def test_an_inventory_with_the_numbers_of_the_scheduler_names_its_gpus_past_cut_ones(cluster):
    halves = ("3g.40gb.0", "3g.40gb.1")
    for uuid, number in ((GPU, 0), (OTHER, 2)):
        known = {"gpu_index": number // 2, "gpu_model": "h100"}
        slot(cluster, "inventory", gpu_id(cluster, uuid), number, **known)
        for source, whose in (("inventory", uuid), ("slurm", f"m#{number}")):
            parts = [(half, "3g.40gb", number + i) for i, half in enumerate(halves)]
            cut(cluster, source, whose, parts)
        slot(cluster, "slurm", f"m#{number}", number)
    cluster.watched(1000)
    yield
    found = {gpu for (gpu,) in cluster.own("gpu_uuid", "intermediate.int_gpu_units")}
    assert found == {gpu_id(cluster, GPU), gpu_id(cluster, OTHER)}
