"""What is remembered from poll to poll: places of GPUs, owners, Xids, layouts of instances.

A poll of a server begins some minutes before the end of the one before it.
"""

from tests.ingest.gpu_lines import GPU, START, power, rows
from tests.tables import gives

from goodput_ingest.gpu_metrics import Memory


def seconds(moment):
    return None if moment is None else (moment - START).total_seconds()


def polls(table, columns, memory, *answers):
    """Return the rows of a table that each answer adds; times are seconds after START."""
    return [
        [
            tuple(seconds(row[c]) if c == "ts" or c.endswith("_at") else row[c] for c in columns)
            for row in rows(lines, memory).get(table, [])
        ]
        for lines in answers
    ]


def over_polls(table, columns, cases):
    """Make the test of a table: answers, and the rows that each adds."""
    return gives(lambda answers: polls(table, columns, Memory(), *answers), cases)


def owner(second, job):
    return power(second, hpc_job=job)


def xid(second, code, **more):
    return ("DCGM_FI_DEV_XID_ERRORS", {**GPU, **more}, second, code)


def cut(second, **profiles):
    """Return readings of instances, as g1="3g.40gb" for GPU instance 1."""
    return [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE",
         {**GPU, "GPU_I_ID": name[1:], "GPU_I_PROFILE": profile}, second, 0.5)
        for name, profile in profiles.items()
    ]  # fmt: skip


def test_a_gpu_is_reported_when_it_is_new_or_has_moved():
    moved = {**GPU, "Hostname": "n2"}
    answers = [
        [("DCGM_FI_DEV_POWER_USAGE", gpu, second, 600)]
        for second, gpu in enumerate((GPU, GPU, moved, moved))
    ]

    found = polls("gpus", ("node", "valid_from_at"), Memory(), *answers)

    assert [[node for node, _ in one] for one in found] == [["n1"], [], ["n2"], []]
    assert found[2] == [("n2", 2)]


def test_a_gpu_whose_node_nobody_says_has_readings_but_no_place():
    lines = [("nvidia_smi_power_draw_watts", {"uuid": "GPU-a"}, 0, 70)]

    assert "gpus" not in rows(lines)
    assert rows(lines)["gpu_samples"][0]["power_w"] == 70.0
    assert rows(lines, node="n1")["gpus"][0]["node"] == "n1"


READ_AGAIN = [owner(s, "7" if s < 90 else "8") for s in range(0, 300, 30)]
test_owners_over_polls = over_polls("gpu_owners", ("owner", "first_seen_at", "last_seen_at"), {
    "an owner goes on from poll to poll as one stretch": (
        [[owner(0, "7")], [owner(30, "7")], [owner(60, "7")], [owner(90, "8")], [owner(120, "7")]],
        [[("7", 0, 0)], [("7", 0, 30)], [("7", 0, 60)], [("8", 90, 90)], [("7", 120, 120)]],
    ),
    "readings that are read again report the same stretches": (
        [READ_AGAIN[:6], READ_AGAIN[1:8], READ_AGAIN[2:]],
        [[("7", 0, 60), ("8", 90, end)] for end in (150, 210, 270)],
    ),
    "an outage of ours ends a stretch": (
        [[owner(0, "7"), owner(30, "7")], [owner(3600, "7")]],
        [[("7", 0, 30)], [("7", 3600, 3600)]],
    ),
})  # fmt: skip


LATCHED = [xid(0, 0), xid(30, 94), xid(60, 94), xid(90, 31), xid(120, 31)]
MIG = [{"GPU_I_ID": name, "GPU_I_PROFILE": "1g.10gb"} for name in "12"]
test_xids_over_polls = over_polls("gpu_events", ("ts", "code", "ts_precision"), {
    "the latch is remembered from poll to poll": (
        [[xid(0, 0)], [xid(30, 79)], [xid(60, 79)], [xid(90, 0)], [xid(120, 79)]],
        [[], [(30, 79, "approximate")], [], [], [(120, 79, "approximate")]],
    ),
    "readings that are read again make no event of a code that is over": (
        [LATCHED, LATCHED[2:], [*LATCHED[3:], xid(150, 79)]],
        [[(30, 94, "approximate"), (90, 31, "approximate")], [], [(150, 79, "approximate")]],
    ),
    "an Xid in an answer of its own is an event of its time": (
        [[power(s) for s in (0, 30, 60, 90)], [xid(0, 0), xid(30, 0), xid(60, 79), xid(90, 79)]],
        [[], [(60, 79, "approximate")]],
    ),
    "a latch read after later readings of its GPU was not watched before": (
        [[power(s) for s in (0, 30, 60)], [xid(0, 79), xid(30, 79)]],
        [[], [(0, 79, "at_or_before")]],
    ),
    "an Xid on a MIG GPU is one event of the GPU": (
        [[xid(second, code, **one) for one in MIG] for second, code in ((0, 0), (30, 79))],
        [[], [(30, 79, "approximate")]],
    ),
})  # fmt: skip


AMD = {"gpu_uuid": "a", "hostname": "n1", "gpu_compute_partition_type": "cpx"}
COLUMNS = ("gpu_instance", "profile", "compute_slices", "valid_from_at", "valid_to_at")
test_layouts_over_polls = over_polls("gpu_instances", COLUMNS, {
    "a whole GPU and the partitions of an AMD GPU are no instances": (
        [[power(0)], [("gpu_prof_sm_active", {**AMD, "gpu_partition_id": "1"}, 0, 40)]], [[], []],
    ),
    "a layout is reported once": (
        [cut(0, g1="3g.40gb"), cut(30, g1="3g.40gb"),
         [*cut(0, g1="3g.40gb"), *cut(60, g1="3g.40gb")]],
        [[("1", "3g.40gb", 3, 0, None)], [], []],
    ),
    "a GPU that is repartitioned is reported whole": (
        [cut(0, g1="4g.40gb", g2="3g.40gb"), cut(30, g1="4g.40gb", g9="1g.10gb")],
        [[("1", "4g.40gb", 4, 0, None), ("2", "3g.40gb", 3, 0, None)],
         [("1", "4g.40gb", 4, 0, 30), ("2", "3g.40gb", 3, 0, 30),
          ("1", "4g.40gb", 4, 30, None), ("9", "1g.10gb", 1, 30, None)]],
    ),
    "an instance of the same id and another profile is another": (
        [cut(0, g1="3g.40gb"), cut(30, g1="2g.20gb")],
        [[("1", "3g.40gb", 3, 0, None)],
         [("1", "3g.40gb", 3, 0, 30), ("1", "2g.20gb", 2, 30, None)]],
    ),
    "series of the whole GPU by another exporter do not end instances": (
        [[*cut(0, g1="3g.40gb"), power(10), *cut(30, g1="3g.40gb"), power(40)],
         [*cut(60, g1="3g.40gb"), power(70)]],
        [[("1", "3g.40gb", 3, 0, None)], []],
    ),
    "instances have gone when their GPU is read without them over a hole": (
        [[*cut(0, g1="3g.40gb"), *cut(30, g1="3g.40gb")],
         [power(second) for second in range(60, 300, 30)], cut(300, g1="3g.40gb")],
        [[("1", "3g.40gb", 3, 0, None)], [("1", "3g.40gb", 3, 0, 60)],
         [("1", "3g.40gb", 3, 300, None)]],
    ),
    "an outage of ours ends no instance": (
        [cut(0, g1="3g.40gb"), cut(7200, g1="3g.40gb")], [[("1", "3g.40gb", 3, 0, None)], []],
    ),
})  # fmt: skip
