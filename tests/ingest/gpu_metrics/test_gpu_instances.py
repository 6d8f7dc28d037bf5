"""MIG instances by the labels of their GPU's series: a new layout is reported as a whole."""

from tests.ingest.gpu_lines import GPU, START, power, rows

from goodput_ingest.gpu_metrics import Memory

ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def cut(seconds, **profiles):
    """Return readings of instances, as g1="3g.40gb" for GPU instance 1."""
    return [
        (ACTIVE, {**GPU, "GPU_I_ID": name[1:], "GPU_I_PROFILE": profile}, seconds, 0.5)
        for name, profile in profiles.items()
    ]


def changes(lines, memory=None):
    """Return instance, profile, slices, begin and end in seconds."""
    return [
        (
            row["gpu_instance"],
            row["profile"],
            row["compute_slices"],
            (row["valid_from_at"] - START).total_seconds(),
            row["valid_to_at"] and (row["valid_to_at"] - START).total_seconds(),
        )
        for row in rows(lines, memory).get("gpu_instances", [])
    ]


def test_a_whole_gpu_and_the_partitions_of_an_amd_gpu_are_no_instances():
    amd = {"gpu_uuid": "a", "hostname": "n1", "gpu_compute_partition_type": "cpx"}

    assert changes([power(0)]) == []
    assert changes([("gpu_prof_sm_active", {**amd, "gpu_partition_id": "1"}, 0, 40)]) == []


def test_a_layout_is_reported_once_over_polls():
    memory = Memory()
    changes(cut(0, g1="3g.40gb"), memory)

    assert changes(cut(30, g1="3g.40gb"), memory) == []
    assert changes([*cut(0, g1="3g.40gb"), *cut(60, g1="3g.40gb")], memory) == []


def test_a_gpu_that_is_repartitioned_is_reported_whole():
    """What stays begins again where the others end, so that one telling says all there is."""
    memory = Memory()
    changes(cut(0, g1="4g.40gb", g2="3g.40gb"), memory)

    found = changes(cut(30, g1="4g.40gb", g9="1g.10gb"), memory)

    assert found == [
        ("1", "4g.40gb", 4, 0, 30),
        ("2", "3g.40gb", 3, 0, 30),
        ("1", "4g.40gb", 4, 30, None),
        ("9", "1g.10gb", 1, 30, None),
    ]


def test_an_instance_of_the_same_id_and_another_profile_is_another():
    memory = Memory()
    changes(cut(0, g1="3g.40gb"), memory)

    assert changes(cut(30, g1="2g.20gb"), memory) == [
        ("1", "3g.40gb", 3, 0, 30),
        ("1", "2g.20gb", 2, 30, None),
    ]


def test_series_of_the_whole_gpu_beside_them_do_not_end_instances():
    """Two exporters read one GPU in turn, and only one of them knows of MIG."""
    memory = Memory()
    lines = [*cut(0, g1="3g.40gb"), power(10), *cut(30, g1="3g.40gb"), power(40)]

    assert changes(lines, memory) == [("1", "3g.40gb", 3, 0, None)]
    assert changes([*cut(60, g1="3g.40gb"), power(70)], memory) == []


def test_instances_have_gone_when_their_gpu_is_read_without_them_over_a_hole():
    memory = Memory()
    changes([*cut(0, g1="3g.40gb"), *cut(30, g1="3g.40gb")], memory)

    found = changes([power(seconds) for seconds in range(60, 300, 30)], memory)

    assert found == [("1", "3g.40gb", 3, 0, 60)]
    assert changes(cut(300, g1="3g.40gb"), memory) == [("1", "3g.40gb", 3, 300, None)]


def test_an_outage_of_ours_ends_no_instance():
    memory = Memory()
    changes(cut(0, g1="3g.40gb"), memory)

    assert changes(cut(7200, g1="3g.40gb"), memory) == []
