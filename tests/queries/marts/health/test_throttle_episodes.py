"""Episodes of throttling: by clock event reasons, else by counters of throttled time."""

from tests.queries.conftest import shown_by

POWER_CAP, HW_THERMAL = 0x4, 0x40


def read(evidence, **values):
    """Load readings of one H100 of 700 W and 1,980 MHz, every 10 s to 100 s."""
    limits = {"power_limit_w": 700.0, "sm_clock_max_hz": 1.98e9}
    evidence.listed("a", "a#0", "test", slurm_index=0, **limits)
    gpu, seconds = evidence.gpu("a#0"), evidence.every(0, 100)
    evidence.readings(gpu, seconds, engine_active_ratio=0.9, **values)


def counts(evidence, metric, values, step=10):
    """Load a counter of throttled seconds, a value every ten seconds."""
    readings = [(step * number, value) for number, value in enumerate(values)]
    evidence.counted(evidence.gpu("a#0"), metric, readings)


EPISODES = """select reason, duration_s, counts_as_loss, evidence, epoch(end_at - start_at)
    from marts.throttle_episodes order by start_at, reason"""
SOURCES = "from marts.throttle_sources"
THROTTLED = """select reason, throttled_hours, read_hours, recurrence, slowdown_margin_c
    from marts.throttled_gpus"""
CAPPED, HOT = {"clocks_event_reasons": POWER_CAP}, {"clocks_event_reasons": HW_THERMAL}
THERMAL_S, POWER_S = "throttle_thermal_s", "throttle_power_s"


def by_reason(name, is_loss):
    return [(name, 110.0, is_loss, "clock event reasons", 110.0)]


# what it shows: values of its readings, a counter and what it counts; what is read of it
test_throttling_of_a_gpu = shown_by({
    "heat costs whatever the GPU draws": (
        {**HOT, "power_w": 170.0, "sm_clock_hz": 0.6e9}, None, EPISODES,
        by_reason("hw_thermal", True)),
    # a power cap counts as loss only where it costs clock below the limit
    "a power cap at the limit": (
        {**CAPPED, "power_w": 690.0, "sm_clock_hz": 1.4e9}, None, EPISODES,
        by_reason("sw_power_cap", False)),
    "a power cap far below the limit": (
        {**CAPPED, "power_w": 170.0, "sm_clock_hz": 0.6e9}, None, EPISODES,
        by_reason("sw_power_cap", False)),
    "a power cap at full clock": (
        {**CAPPED, "power_w": 500.0, "sm_clock_hz": 1.9e9}, None, EPISODES,
        by_reason("sw_power_cap", False)),
    "a power cap with a low clock below the limit": (
        {**CAPPED, "power_w": 500.0, "sm_clock_hz": 1.0e9}, None, EPISODES,
        by_reason("sw_power_cap", True)),
    "a power cap of which nothing is known": (
        CAPPED, None, EPISODES, by_reason("sw_power_cap", False)),
    "without reasons an episode is where a counter goes up": (
        {}, (THERMAL_S, [5, 5, 9, 14, 14, 14, 20, 20, 20, 20, 20]), EPISODES,
        [("thermal", 9.0, True, "throttle counters", 20.0),
         ("thermal", 6.0, True, "throttle counters", 10.0)]),
    "a counter that is reset gained nothing": ({}, (POWER_S, [5, 5, 0, 0]), EPISODES, []),
    "microseconds that are read as nanoseconds are no gain": (
        {}, (POWER_S, [0, 0, 9000, 9000]), EPISODES, []),
    "jitter of a busy GPU is no gain": ({}, (POWER_S, [0, 0.01, 0.02, 0.03]), EPISODES, []),
    "where readings carry reasons counters add nothing": (
        {"clocks_event_reasons": 0}, (THERMAL_S, [0, 9, 18]), EPISODES, []),
    "a source that reports no throttling": ({}, ("other", [0, 0]), SOURCES, [(True, False, False)]),
    "one that reports reasons": (
        {"clocks_event_reasons": 0}, ("other", [0, 0]), SOURCES, [(True, True, False)]),
    "one that reports counters": ({}, (POWER_S, [0, 0]), SOURCES, [(True, False, True)]),
    "counters of throttled time count where there are no reasons": (
        {}, (THERMAL_S, [5, 5, 9, 14, 14]), THROTTLED, [("thermal", 1, 1, None, None)]),
}, load=lambda c, values, counted: [
    read(c, **values), counted and counts(c, *counted)])  # fmt: skip


# what it shows: hours with a reason of those read, limit in the inventory and in readings;
# whether it comes back, degrees to the limit
test_how_often_a_gpu_is_throttled = shown_by({
    "a quarter of the hours is chronic": (3, 12, 90.0, [], [("hw_thermal", 3, 12, "chronic", 6)]),
    "two of twelve hours are passing": (2, 12, 90.0, [], [("hw_thermal", 2, 12, "passing", 6)]),
    "of few hours it is not known": (3, 5, 90.0, [], [("hw_thermal", 3, 5, None, 6)]),
    "a limit of readings comes before that of the inventory": (
        3, 12, 90.0, [87, 87], [("hw_thermal", 3, 12, "chronic", 3)]),
    "a limit of readings alone": (3, 12, None, [87, 87], [("hw_thermal", 3, 12, "chronic", 3)]),
    "no limit": (3, 12, None, [], [("hw_thermal", 3, 12, "chronic", None)]),
}, read=THROTTLED, load=lambda c, hours, of_hours, limit, reported: [
    c.listed("a", "a#0", "test", slurm_index=0, slowdown_temperature_c=limit),
    c.readings(c.gpu("a#0"), range(0, 3600 * of_hours, 600), gpu_temperature_c=84.0,
               clocks_event_reasons=lambda s: HW_THERMAL if s < 3600 * hours else POWER_CAP),
    counts(c, "slowdown_temperature_c", reported, 600)])  # fmt: skip


BUS = "00000000:19:00.0"
EVENT = "select kind, code, severity from marts.gpu_events"


def xid(code, message, kind="xid"):
    """Return what loads an error of a GPU with its message."""
    named = {"pci_bus_id": BUS, "kind": kind, "message": f"(PCI:0000:19:00): {code}, {message}"}
    return lambda c: [c.listed("a", c.gpu("a"), pci_bus_id=BUS), c.xid("a", code, 60, **named)]


LINK = "NETIR_LINK_EVT  {}   XC0 i0 Link 02"
test_the_severity_is_that_of_the_code_else_the_word_in_the_message = shown_by({
    "a word in the message: nonfatal": (
        xid(149, LINK.format("Nonfatal")), EVENT, [("xid", 149, "warning")]),
    "fatal": (xid(149, LINK.format("Fatal")), EVENT, [("xid", 149, "gpu_fatal")]),
    "no word": (xid(149, "NETIR_LINK_EVT"), EVENT, [("xid", 149, "varies")]),
    "not what this code is": (xid(79, "Nonfatal, it says"), EVENT, [("xid", 79, "node_fatal")]),
    "of NVSwitch: not fatal": (
        xid(12028, "Non-fatal, Link 03", "sxid"), EVENT, [("sxid", 12028, "warning")]),
    "of NVSwitch: fatal": (
        xid(12028, "Fatal, Link 03", "sxid"), EVENT, [("sxid", 12028, "gpu_fatal")]),
    "of NVSwitch: no word": (xid(12028, "Link 03", "sxid"), EVENT, [("sxid", 12028, None)]),
})  # fmt: skip
