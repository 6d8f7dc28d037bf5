"""Phases without an end: how long each lasts, whatever the GPUs show meanwhile."""

from tests.queries.conftest import Cluster, durable, each, phase, shown_by, steps
from tests.queries.rules.jobs.test_rules_of_jobs import event

READ = range(-10, 701, 10)
STEPS = [*steps(1, 10, 0), durable(10, 100)]


def opened(phase, second=100):
    return event("phase.start", second, phase=phase)


# what it shows: events of a running job, readings, when the GPU is active, GPU-seconds
@each({
    "a save of a running job with an active GPU": (
        [*STEPS, opened("ckpt_save")], READ, lambda _: True,
        {"step_unsplit": 100, "checkpoint_save": 600}),
    "a save of a running job with an inactive GPU": (
        [*STEPS, opened("ckpt_save")], READ, lambda s: s <= 100,
        {"step_unsplit": 100, "checkpoint_save": 600}),
    "a restore of a running job without readings": (
        [event("job.start", 100), opened("restore")], [], None,
        {"startup": 100, "restore": 600}),
    "an initialisation of a running job with an inactive GPU": (
        [event("job.start", 100), opened("init")], READ, lambda s: s <= 100,
        {"startup": 700}),
    "an initialisation that ended, with a restore in it and an inactive GPU": (
        [event("job.start", 60), opened("init", 60), opened("restore", 100),
         event("phase.end", 150, phase="restore"), event("phase.end", 300, phase="init")], READ,
        lambda s: s <= 100, {"startup": 250, "restore": 50, "idle_held": 400}),
    "a save that the next step of its rank ended, with an inactive GPU": (
        [*STEPS, opened("ckpt_save"), *steps(11, 30, 500)], READ, lambda s: s <= 100,
        {"step_unsplit": 100, "checkpoint_save": 410, "at_risk": 190}),
})  # fmt: skip
def test_an_open_phase_of_a_scheduled_job(cluster, events, read, active, expected):
    cluster.job_on_a_node("1", 0, None, 1, "RUNNING", watched=700)
    cluster.events("1", events)
    if active:
        cluster.samples("a#0", list(read), active)
    yield
    assert cluster.gpu_s() == expected


BEGUN = [event("job.start", 10), opened("init", 20)]
# length of the steps, GPU-seconds; of a first one without a length it is not known when it began
test_a_rank_that_falls_silent_in_a_phase_does_not_stop_the_steps_of_its_gang = shown_by({
    "given": ({}, {"startup": 100, "step_unsplit": 1200, "teardown": 100}),
    "not given": ({"dur_s": None}, {"startup": 120, "step_unsplit": 1180, "teardown": 100}),
}, before=lambda c: c.job_on_a_node("1", 0, 700, 2), read=Cluster.gpu_s, load=lambda c, length: [
    c.events("1", [*BEGUN, event("phase.end", 30, phase="init"),
                   *(step | length for step in steps(1, 60, 50))]),
    c.events("1", BEGUN, rank=1)])  # fmt: skip


# what it shows: until when the GPU is read, GPU-seconds of a run that saves from second 100 on
test_an_open_phase_of_a_run_known_from_events_alone = shown_by({
    "lasts while less than 15 minutes have passed": (
        990, {"step_unsplit": 100, "checkpoint_save": 890}),
    "is silence after 15 minutes: the job stalled with its last event": (
        2000, {"step_unsplit": 100, "fault_stall": 1900}),
}, before=lambda c: c.telemetry("a", 1), read=Cluster.gpu_s, load=lambda c, until: [
    c.events("train", [event("job.start", 0), *STEPS, opened("ckpt_save")], attempt=None, host="a",
             local_rank=0),
    c.samples("a-0", c.every(-10, until), lambda _: True, source="nvml")])  # fmt: skip


def readings(gpu, interval, active, first=None):
    """Return what reads a GPU from before the job on; `active` says when it works in the gap."""
    return gpu, interval, active, -interval if first is None else first


# what it shows: GPUs, length of the gap from second 100 on, readings, category of the gap
@each({
    "one active reading of one GPU does not make a gap active": (
        4, 100, [readings(g, 10, lambda s, g=g: g == 0 and s == 150) for g in range(4)],
        {"idle_held"}),
    "a gap in which over a tenth of the readings show activity is not idle": (
        4, 100, [readings(g, 10, lambda s, g=g: g == 0 and s > 140) for g in range(4)],
        {"busy_unclassified"}),
    "readings at the ends of a gap cover the steps next to it": (
        1, 100, [readings(0, 10, lambda s: s <= 106 or s > 196, first=-5)], {"idle_held"}),
    "a gap shorter than two sampling intervals is not called idle": (
        1, 15, [readings(0, 10, lambda _: False)], {"busy_unclassified"}),
    "a gap without a reading is unknown": (1, 100, [], {"unknown"}),
    "GPUs read too seldom to describe a gap leave it to those read often": (
        2, 60, [readings(0, 10, lambda _: False), readings(1, 60, lambda _: False, first=-60)],
        {"idle_held"}),
})  # fmt: skip
def test_what_a_gap_between_two_steps_was(cluster, gpus, length, read, expected):
    end = 100 + length
    cluster.job_on_a_node("1", 0, end + 100, gpus)
    cluster.events("1", [*steps(1, 10, 0), *steps(11, 20, end)])
    for gpu, interval, active, first in read:
        seconds = cluster.every(first, end + 100, interval)
        works = lambda s, active=active: not 100 < s <= end or active(s)  # noqa: E731 -- of one GPU
        cluster.samples(f"a#{gpu}", seconds, works)
    yield
    found = cluster.own("category", "marts.ledger_pieces", "phase = 'undeclared_gap'")
    assert {category for (category,) in found} == expected


SPLIT = {"straggler_s": 1.0, "comm_s": 1.0}
WAITS_ALONE = {"straggler_s": 4.0, "comm_s": 7.0}
# what it shows: end and state of the job run, its events, GPU-seconds
test_ledger_of_short_gaps = shown_by({
    "a short gap after a phase belongs to the phase however short the phase is": (
        1000, "COMPLETED",
        [*steps(1, 50, 0), phase("ckpt_save", 500, 500.3), *steps(51, 90, 500.304),
         phase("eval", 900.304, 900.5), *steps(91, 99, 900.53)],
        {"step_unsplit": 990, "checkpoint_save": 0.304, "other_declared": 0.226, "teardown": 9.47}),
    "a short gap after a step of waits alone is productive": (
        100, "COMPLETED", [*steps(1, 5, 0, **WAITS_ALONE), *steps(6, 9, 50.06, **WAITS_ALONE)],
        {"straggler_wait": 36, "exposed_comm": 54, "productive": 0.06, "teardown": 9.94}),
    "a short gap after a measured step is productive whatever follows it": (
        100, "FAILED", [*steps(1, 5, 0, **SPLIT), *steps(6, 9, 50.06, **SPLIT), durable(5, 50)],
        {"straggler_wait": 5, "exposed_comm": 5, "productive": 40.06, "lost_work": 40,
         "fault_stall": 9.94}),
}, read=Cluster.gpu_s, load=lambda c, end, state, events: [
    c.job_on_a_node("1", 0, end, 1, state), c.events("1", events)])  # fmt: skip
