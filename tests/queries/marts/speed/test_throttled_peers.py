"""Which rank the others wait for; a GPU that is held back: what it costs, and who is blamed."""

import pytest
from tests.queries.conftest import each, shown_by, steps

from goodput_queries.ledger import ledger
from goodput_queries.scope import Scope

HW_THERMAL = 0x40


def readings(evidence, hot, gpus=2, until=249):
    """Load telemetry every 5 s: GPU `hot` carries a slowdown reason after 100 s."""
    for gpu in range(gpus):
        seconds = [s + 0.5 for s in evidence.every(0, until, 5)]
        reasons = lambda s, gpu=gpu: HW_THERMAL * (gpu == hot and s > 100.5)  # noqa: E731
        more = {"clocks_event_reasons": reasons, "engine_active_ratio": 0.9}
        evidence.readings(evidence.gpu(f"a#{gpu}"), seconds, f"dcgm{gpu}", **more)


def slow_gang(evidence, gpus=2, ranks=None, fast=10, **of_rank):
    """Load `fast` steps of 10 s, then ten of 15 s; `of_rank`: more by rank."""
    slow_from = 10 * fast
    evidence.job_on_a_node("1", 0, slow_from + 150, gpus)
    for rank in range(ranks or gpus):
        more = of_rank.get(f"r{rank}", {})
        named = {"gpu_uuid": None if ranks == 1 else evidence.gpu(f"a#{rank}")}
        slow = steps(fast + 1, fast + 10, slow_from, 15, **more)
        named |= {"rank": rank, "pid": evidence.first_pid + rank}
        evidence.events("1", [*steps(1, fast, 0), *slow], **named)


def parts(evidence):
    """Return GPU-seconds by category, phase and blame of losses inside steps."""
    keys = ["category", "phase", "blame"]
    rows = ledger(evidence.store, by=keys, scope=Scope(cluster=evidence.name))
    found = {tuple(key): gpu_s for *key, gpu_s in rows.select(*keys, "gpu_s").rows()}
    return {key: found[key] for key in found if key[0] in {"throttled", "straggler_wait"}}


def short_steps(cluster):
    """Of 100 slow steps the first has a reading of its own, still without a reason."""
    cluster.job_on_a_node("1", 0, 250, 2)
    for rank in (0, 1):
        gpu = cluster.gpu(f"a#{rank}")
        ran = [*steps(1, 100, 0, 1), *steps(101, 200, 100, 1.5)]
        cluster.events("1", ran, rank=rank, gpu_uuid=gpu)
        reasons = lambda s, rank=rank: HW_THERMAL * (rank and s > 100)  # noqa: E731
        seconds = cluster.every(-5, 265, 15)
        cluster.readings(gpu, seconds, f"dcgm{rank}", clocks_event_reasons=reasons)


def throttled_gpus(cluster):
    sql = "select distinct gpu_uuid from marts.ledger_scoped where category = 'throttled'"
    return parts(cluster), [gpu[-1] for (gpu,) in cluster.read(sql).rows()]


def test_the_loss_names_the_throttled_gpu_and_what_it_cost_the_gang(cluster):
    slow_gang(cluster, 4)
    readings(cluster, hot=3, gpus=4)
    cluster.add("rates", price_per_gpu_h=3.6)
    yield
    assert parts(cluster) == {
        ("throttled", None, "platform"): 50,
        ("straggler_wait", "throttled_peer", "platform"): 150,
    }
    episode = cluster.read("select reason, contains(verdict, 'hot') from marts.throttle_episodes")
    assert episode.row(0) == ("hw_thermal", True)
    columns = "gpu_uuid, reason, own_gpu_s, peers_wait_gpu_s, peers, gang_gpu_s, gang_cost::double"
    radius = (cluster.gpu("a#3"), "throttled", 50, 150, 3, 200, pytest.approx(0.2))
    assert cluster.read(f"select {columns} from marts.blast_radius").rows() == [radius]
    losses = "category, cause, contains(evidence, 'cost the gang 200.0 GPU-s')"
    found = cluster.read(f"select {losses} from marts.loss_causes where blame = 'platform'")
    assert set(found.rows()) == {
        (category, "GPU 3 of a was throttled", True) for category in ("throttled", "straggler_wait")
    }


LATE, WAITS = {"comm_s": 0.5}, {"comm_s": 6.0}
PEER, OWN = ("straggler_wait", "throttled_peer", "platform"), ("straggler_wait", None, "own")
OF_GPU = ("throttled", None, "platform")
# what it shows: what is loaded; losses, and the number of the throttled GPU
test_the_throttled_gpu = shown_by({
    "where one rank reports for all any throttled GPU is distinguished": (
        lambda c: [slow_gang(c, 4, ranks=1), readings(c, hot=2, gpus=4)],
        ({OF_GPU: 50, PEER: 150}, ["2"])),
    "steps shorter than the sampling interval have the reading that covers them": (
        short_steps, ({OF_GPU: 49.5, PEER: 49.5}, ["1"])),
}, read=throttled_gpus)  # fmt: skip


# what it shows: unthrottled steps, what ranks 0 and 1 measure, which one is late by NCCL; losses,
# where the GPU of rank 1 is held back
@each({
    # by the ranks' own measure
    "a straggler that is throttled passes the blame on": (10, WAITS, LATE, None, {PEER: 55}),
    # rank 1 waits, its clocks cost nothing
    "a straggler beside a throttled GPU keeps the blame": (10, LATE, WAITS, None, {OWN: 55}),
    # the attempt's median is that of its unthrottled steps: 12 of them and 10 slow ones
    "by NCCL the throttled GPU is the late one": (12, {}, {}, 1, {OF_GPU: 50, PEER: 50}),
    "by NCCL the other one is late": (12, {}, {}, 0, {("straggler_wait", None, "own"): 50}),
})  # fmt: skip
def test_who_is_blamed_for_waits_beside_a_throttled_gpu(cluster, fast, r0, r1, late, expected):
    slow_gang(cluster, fast=fast, r0=r0, r1=r1)
    readings(cluster, hot=1, until=269)
    if late is not None:
        waited_s = [0.5 if rank == late else 6.0 for rank in (0, 1)]
        cluster.all_reduces(waited_s, range(125, 275, 15))
    yield
    found = parts(cluster)
    assert {part: found[part] for part in expected} == expected
    assert (OWN in found) == (OWN in expected)


LATE_RANK = {"r0": {"comm_s": 6.0}, "r1": {"comm_s": 0.5}}
RADIUS = "select reason, peers_wait_gpu_s from marts.blast_radius"
# the error comes in later than the steps, as a kernel log does
test_errors = shown_by({"a straggler with a hardware error passes the blame on": (
              [lambda c: slow_gang(c, 2, **LATE_RANK),
               lambda c: c.xid("a", 63, 90, gpu_uuid=c.gpu("a#1"))],
              [({("straggler_wait", None, "own"): 55}, [("late", 55)]),
               ({("straggler_wait", "faulty_peer", "platform"): 55},
                [("faulty", 55)])])}, read=lambda c: (parts(c), c.read(RADIUS).rows()),
    builds=2)  # fmt: skip


def gang(cluster, comm_s, count=20, length=2.0, **parts):
    """Load a rank for each of `comm_s`: a number, or a function of the step.

    parts: other fields of the steps, a list of them by rank; None: the rank does not report it
    """
    cluster.node("a", len(comm_s))
    cluster.job("1", 0, count * length, ["a"], len(comm_s))
    for rank, reported in enumerate(comm_s):
        events = steps(1, count, 0, length)
        for event in events:
            value = reported(event["step"]) if callable(reported) else reported
            if value is not None:
                event["comm_s"] = value
            event |= {name: of[rank] for name, of in parts.items() if of[rank] is not None}
        cluster.events("1", events, rank=rank, gpu_uuid=cluster.gpu(f"a#{rank}"))


def late_ones(step):
    """Return how long the others wait in a step of which four are late."""
    return 0.9 if 5 <= step <= 8 else 0.1


# what it shows: comm_s by rank, steps and their length; rank, steps and imposed wait of stragglers,
# the first step names nobody; GPU-seconds by category
@each({
    "the one that waits least": (
        [0.9, 0.9, 0.9, 0.1], 20, 2.0, [(3, 19, 19 * 3 * 0.8)],
        {"straggler_wait": 48, "exposed_comm": 8, "productive": 160 - 48 - 8}),
    "a rank that is late in some steps": (
        [late_ones, late_ones, late_ones, 0.1], 20, 2.0, [(3, 4, 4 * 3 * 0.8)],
        {"straggler_wait": 9.6, "exposed_comm": 8, "productive": 160 - 9.6 - 8}),
    "equal communication names nobody": (
        [0.9] * 4, 20, 2.0, [], {"exposed_comm": 72, "productive": 88}),
    "of a job of one GPU all of it is communication, and the rest stays unsplit": (
        [0.9], 20, 2.0, [], {"exposed_comm": 18, "step_unsplit": 22}),
    "comm_s of some ranks names nobody and splits no wait": (
        [0.9, None, None, 0.1], 20, 2.0, [], {"exposed_comm": 20, "step_unsplit": 140}),
    # as the ranks of a job that hangs after some short steps do
    "waits below a GPU-second name nobody": (
        [0.02, 0.02, 0.02, 0.0], 10, 0.1, [], {"straggler_wait": 0.6, "productive": 3.4}),
})  # fmt: skip
def test_stragglers_of_a_gang(cluster, comm_s, count, length, late, ledger):
    gang(cluster, comm_s, count, length)
    yield
    found = cluster.read(
        "select rank, steps, round(imposed_wait_gpu_s, 3), evidence from marts.stragglers "
        "order by rank, first_step"
    ).rows()
    assert [row[:3] for row in found] == [pytest.approx(row) for row in late]
    assert all("comm_s" in row[3] for row in found)
    assert cluster.gpu_s() == pytest.approx(ledger)
    if not late:
        own = f"where starts_with(run_key, '{cluster.name}/')"
        named = cluster.read(f"select straggler_rank from marts.train_steps {own}")
        assert named["straggler_rank"].null_count() == count


PARTS = {"fwd_s": [0.5] * 4, "bwd_s": [1.4, 1.4, 1.4, 0.6]}
# what the ranks also report; the wait that it gives, or none where no GPU is named
test_stragglers_by_the_parts_of_steps = shown_by({
    "a rank that is late in all steps": ([None] * 4, {}, [(3, 19, 45.6)]),
    "a rank without parts": ([None] * 4, {"bwd_s": [1.4, 1.4, None, 0.6]}, []),
    "an optimizer that one rank reports": ([None] * 4, {"opt_s": [0.1, None, None, None]}, []),
    "what is measured comes first": ([0.9, 0.1, 0.9, 0.9], {}, [(1, 19, 45.6)]),
}, load=lambda c, comm_s, parts: gang(c, comm_s, **PARTS | parts),
    read="select rank, steps, round(imposed_wait_gpu_s, 3) from marts.stragglers")  # fmt: skip
