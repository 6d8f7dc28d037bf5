"""What a reboot changes: numbers of GPUs, and GPUs themselves; UUIDs say which is which."""

from goodput_queries.check import check

A, B, C = (f"GPU-{letter}" for letter in "abc")


def inventory(evidence, second, source="dcgm", **gpus):
    """Load which GPU has which number from a moment on: `a=0`, GPU-a is number 0."""
    rows = [{"gpu_uuid": f"GPU-{name}", "gpu_index": index} for name, index in gpus.items()]
    placed = {"node": "n", "gpu_model": "h100", "valid_from_at": second}
    evidence.add("gpus", *rows, source=source, **placed)


def readings(evidence, gpu, first, until):
    rows = [{"ts": second} for second in evidence.every(first, until)]
    read = {"gpu_uuid": gpu, "gpu_instance": "", "engine_active_ratio": 0.9, "is_flagged": False}
    evidence.add("gpu_samples", *rows, source="dcgm", **read)


def gpu_s(evidence):
    """Build; return GPU-seconds in the inventory by GPU."""
    evidence.store.build()
    assert check(evidence.store)["violations"].sum() == 0
    rows = evidence.store.read(
        "select gpu_uuid, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all"
    )
    return dict(rows.rows())


def test_gpus_that_change_numbers_at_a_reboot_stay_two(evidence):
    inventory(evidence, 0, a=0, b=1)
    inventory(evidence, 500, a=1, b=0)
    evidence.watched(1000)
    evidence.job("1", 600, 1000, ["n"], 1)
    evidence.hold("1", submit=600, node="n", slurm_index=1)

    assert gpu_s(evidence) == {A: 1000, B: 1000}
    held = evidence.store.read("select gpu_uuid from intermediate.int_holds")
    assert held.to_series().to_list() == [A]


def test_a_gpu_that_another_one_was_put_in_place_of_has_left(evidence):
    inventory(evidence, 0, a=0, b=1)
    for gpu, until in ((A, 490), (B, 1000)):
        readings(evidence, gpu, 0, until)
    inventory(evidence, 600, c=0)
    readings(evidence, C, 600, 1000)

    assert gpu_s(evidence) == {A: 600, B: 1000, C: 400}


def test_gpus_of_one_number_that_are_read_side_by_side_are_all_there(evidence):
    """Each of two exporters sees one GPU of the node, and calls it the first."""
    inventory(evidence, 0, a=0)
    inventory(evidence, 300, b=0)
    readings(evidence, A, 0, 1000)
    readings(evidence, B, 300, 1000)

    assert gpu_s(evidence) == {A: 1000, B: 700}


def test_a_gpu_that_came_back_has_not_left(evidence):
    inventory(evidence, 0, a=0)
    readings(evidence, A, 0, 200)
    inventory(evidence, 300, c=0)
    readings(evidence, C, 300, 500)
    evidence.store.build()
    inventory(evidence, 600, a=1)
    readings(evidence, A, 600, 1000)

    assert gpu_s(evidence) == {A: 1000, C: 700}
