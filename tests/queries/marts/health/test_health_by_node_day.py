"""Errors of nodes by day: rises of counters, incidents of Xids, thermal slowdown."""

from datetime import date

import pytest
from tests.queries.conftest import START_MS, built_once, each, read_from_world

from goodput_queries.scope import Scope

HOUR, HOUR_MS = 3_600, 3_600_000
FIRST_DAY, SECOND_DAY = date(2027, 1, 15), date(2027, 1, 16)  # evidence begins at 08:00
BUS_A, BUS_B = "00000000:19:00.0", "00000000:3b:00.0"
HW_THERMAL = 0x40


def place(made, node, gpu, bus, start=0.0, end=None):
    made.listed(node, gpu, pci_bus_id=bus, valid_from_at=start, valid_to_at=end)


def gauge(made, node, gpu, code, second, precision="approximate"):
    """Load the event that a change of the exporter's gauge is."""
    more = {"gpu_uuid": gpu, "ts_precision": precision, "cluster": None}
    made.xid(node, code, second, source="dcgm", message=f"Xid {code}", **more)


@built_once
def world(made):
    """Node a with one GPU, node b whose GPU was replaced after six hours, node c without a reading.

    Built twice, so that counters go on over the border of two builds.
    """
    place(made, "a", "GPU-a", BUS_A)
    place(made, "b", "GPU-old", BUS_B, 0, 6 * HOUR)
    place(made, "b", "GPU-new", BUS_B, 6 * HOUR)
    place(made, "c", "GPU-c", BUS_A)
    corrected = "ecc_corrected_volatile_total"
    made.counted("GPU-a", corrected, [(0, 877), (1800, 880), (3000, 2), (3300, 5)])
    made.counted("GPU-a", "ecc_corrected_lifetime_total", [(0, 9000), (3300, 9004)], "nvml")
    made.counted("GPU-a", "nvlink_crc_flit_error_total", [(0, 0), (60, 1)])
    made.counted("GPU-a", "nvlink_replay_total", [(0, 5), (60, 7)])
    made.counted("GPU-a", "ecc_uncorrected_volatile_total", [(0, 3), (60, 3)])
    made.counted("GPU-old", "ecc_uncorrected_volatile_total", [(0, 10), (60, 10)])
    made.counted("GPU-old", "throttle_thermal_s", [(0, 0), (100, 40)])
    hot = lambda s: HW_THERMAL if s < 200 else 0  # noqa: E731 -- of one GPU
    made.readings("GPU-a", range(0, 600, 100), "test", clocks_event_reasons=hot)
    for code, second in ((48, 90), (79, 100), (45, 110)):
        made.xid("a", code, second, pci_bus_id=BUS_A, cluster=None)
    gauge(made, "a", "GPU-a", 79, 130)
    for second in (10_000, 10_200, 10_381, 10_682):
        made.xid("a", 119, second, pci_bus_id=BUS_A, cluster=None)
    made.xid("b", 31, 1_000, pci_bus_id=BUS_B, cluster=None)
    made.store.build()
    made.counted("GPU-a", corrected, [(5_400, 9), (17 * HOUR, 10)])
    made.counted("GPU-new", "ecc_uncorrected_volatile_total", [(7 * HOUR, 100), (8 * HOUR, 100)])
    gauge(made, "b", "GPU-new", 79, 7 * HOUR, "at_or_before")
    made.xid("b", 94, 8 * HOUR, pci_bus_id=BUS_B, cluster=None)


def value(world, node, kind, day=FIRST_DAY, **scope):
    """Return the value of a node's day, None where nothing was read."""
    of_day = "from marts.health_by_node_day where node = $1 and kind = $2 and day_at::date = $3"
    found = world.store.read(f"select value {of_day}", [node, kind, day], scope=Scope(**scope))
    return found.item() if found.height else None


ONE_HOUR = {"from_ms": START_MS + HOUR_MS, "to_ms": START_MS + 2 * HOUR_MS}


# what it shows: node, kind, day, scope, value
@each({
    # 877 is as old as the GPU: 3 until the driver is loaded again, then 2, 3, and 4 by 09:30; the
    # counter of the GPU's life, and the second source that reads it, count the same errors
    "a counter counts by its rise and a reset begins at zero": (
        "a", "ecc_corrected", FIRST_DAY, {}, 3 + 2 + 3 + 4),
    "a rise counts on the day that shows it": ("a", "ecc_corrected", SECOND_DAY, {}, 1),
    "the last value before the window is what its first rises from": (
        "a", "ecc_corrected", FIRST_DAY, ONE_HOUR, 4),
    "parts of a kind add up": ("a", "nvlink", FIRST_DAY, {}, 1 + 2),
    "a counter that stays is zero": ("a", "ecc_uncorrected", FIRST_DAY, {}, 0),
    "one that nobody reads is missing": ("a", "row_remap", FIRST_DAY, {}, None),
    "one of a node that nobody reads is missing": ("c", "ecc_uncorrected", FIRST_DAY, {}, None),
    # the old GPU had counted 10 errors, the new one brings 100
    "a GPU in place of another begins with its own counters": (
        "b", "ecc_uncorrected", FIRST_DAY, {}, 0),
    "thermal slowdown is the share of readings with a reason": (
        "a", "thermal", FIRST_DAY, {}, 600 * 2 / 6),
    "without reasons it is the rise of its counter": ("b", "thermal", FIRST_DAY, {}, 40),
    "an incident ends after five quiet minutes": ("a", "xid_hardware", FIRST_DAY, {}, 3),
    "an Xid that programs cause is no fault of the node": (
        "b", "xid_application", FIRST_DAY, {}, 1),
    "the 94 eight hours later is one": ("b", "xid_hardware", FIRST_DAY, {}, 1),
    "days between the events of a cluster were read": ("c", "xid_hardware", FIRST_DAY, {}, 0),
    "days after them were not": ("c", "xid_hardware", SECOND_DAY, {}, None),
})  # fmt: skip
def test_value_of_a_day(world, node, kind, day, scope, expected):
    assert value(world, node, kind, day, **scope) == pytest.approx(expected)


INCIDENTS = "from marts.gpu_incidents where node = '{}' order by start_at"
KINDS = "select distinct node from marts.health_by_node_day"
test_errors_of_nodes = read_from_world({
    "memory errors of a GPU are listed by hour, and a counter that stays has no hour": (
        f"select kind, (epoch_ms(hour_at) - {START_MS}) // {HOUR_MS} as hour, rise "
        "from marts.gpu_memory_errors order by kind, hour_at",
        [("ecc_corrected", 0, 3 + 2 + 3), ("ecc_corrected", 1, 4), ("ecc_corrected", 17, 1),
         ("ecc_uncorrected", None, 0)], Scope(gpu_uuid="GPU-a")),
    "what two sources report of one fault is one incident of its worst Xid": (
        "select code, codes, class, events, sources, left(what_to_do, 29) "
        f"{INCIDENTS.format('a')} limit 1",
        [(79, [45, 48, 79], "hardware", 3, "dcgm, kernel log", "Drain the node and restart it")]),
    "incidents after five quiet minutes": (
        f"select code, events {INCIDENTS.format('a')} offset 1", [(119, 3), (119, 1)]),
    # and a latch that was set before it was first read is no incident
    "an Xid by bus address belongs to the GPU that was there then": (
        f"select gpu_uuid, code {INCIDENTS.format('b')}", [("GPU-old", 31), ("GPU-new", 94)]),
    "Xids by code count each incident once": (
        "select code, incidents, alone, nodes, gpus from marts.xids_by_code order by code",
        [(31, 1, 1, 1, 1), (45, 1, 0, 1, 1), (48, 1, 0, 1, 1), (79, 1, 0, 1, 1), (94, 1, 1, 1, 1),
         (119, 2, 2, 1, 1)]),
    "the scope is a node": (KINDS, [("b",)], Scope(node="b")),
    "the scope is a GPU": (KINDS, [("a",)], Scope(gpu_uuid="GPU-a")),
    "every kind of a counter has a label, states are none": (
        "select distinct kind from reference.error_counters "
        "anti join reference.health_kinds using (kind) order by kind",
        [("remap_failed",), ("xid_gauge",)]),
})  # fmt: skip
