"""Training runs with losses put into them, in milliseconds, and the same runs without some of them.

What a fix gives back is the difference: the time that the run's GPUs were held and not useful, less
that of the run without the loss, with its gang at the usual step, its gaps and waits gone, no step
done twice. Nothing here knows how the product finds a loss.
"""

import random
from dataclasses import dataclass, field, replace

START_MS, TEARDOWN_MS, SAVE_MS, COMM_MS, READ_MS = 41_000, 3_000, 2_013, 1_000, 5_000
HW_THERMAL = 0x40
LATE, HOT = 1, 0  # rank that is late, GPU that is throttled
# In the order in which they are taken away: what is in two of them is of the first.
LOSSES = ("gaps", "pauses", "crashes", "limit", "input", "slow")
OF_KIND = {"gap": "gaps", "pause": "pauses", "crash": "crashes"}


@dataclass(frozen=True)
class Block:
    """A part of a run: a step, a save, a gap, a wait for data between steps, or a crash.

    `lost_by`: of steps, and of what is among them, after the last save before an end.
    """

    kind: str
    ms: int
    data_ms: int = 0  # of a step: waits for input inside of it
    excess_ms: int = 0  # of a step: what it takes over the gang's usual one
    lost_by: str = ""
    restart_ms: int = 0  # of a crash: from the end of the stall to the next step


@dataclass
class Report:
    """What a run leaves behind: its events, its readings and its length."""

    events: list = field(default_factory=list)
    end_ms: int = 0
    useful_gpu_ms: int = 0
    idle: list = field(default_factory=list)
    slowed: list = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """A run of one gang on one node; `slow`: what its slow steps wait for, throttled or late."""

    gpus: int
    slow: str
    state: str
    blocks: tuple[Block, ...]
    start_ms: int = START_MS

    def without(self, losses):
        """Return the run without some of its losses.

        Without its crashes it starts as its first attempt did that kept something: an attempt that
        kept nothing is lost as a whole.
        """
        kept, start_ms, has_kept = [], self.start_ms, False
        for block in self.blocks:
            has_kept = has_kept or block.kind == "save"
            if block.kind == "crash" and "crashes" in losses and not has_kept:
                start_ms = block.restart_ms
            if (block.lost_by or OF_KIND.get(block.kind)) not in losses:
                gone = {"data_ms": 0} if "input" in losses else {}
                gone |= {"excess_ms": 0} if "slow" in losses else {}
                kept.append(replace(block, **gone))
        is_good = self.state == "TIMEOUT" and "limit" in losses
        state = "COMPLETED" if is_good else self.state
        return replace(self, blocks=tuple(kept), state=state, start_ms=start_ms)

    def wasted_gpu_ms(self):
        """Return the GPU time that was held and is not useful."""
        report = self.reported()
        return self.gpus * report.end_ms - report.useful_gpu_ms

    def gives_back(self):
        """Return what each loss costs once those before it are gone: they add up to all of it."""
        found, before = {}, self.wasted_gpu_ms()
        for count, loss in enumerate(LOSSES, 1):
            after = self.without(LOSSES[:count]).wasted_gpu_ms()
            found[loss], before = before - after, after
        return {loss: ms for loss, ms in found.items() if ms}

    def reported(self):
        """Return what the run reports, from its start on."""
        found, now, step, saved, attempt = Report(), self.start_ms, 1, 0, 0

        def say(event, **more):
            found.events.append({"event": event, "at": now, "attempt": attempt, **more})

        say("job.start", at=1_000)
        for block in self.blocks:
            begin = now
            now += block.ms + block.data_ms + block.excess_ms
            spent = {"dur_ms": now - begin}
            if block.kind == "step":
                say("step", step=step, block=block, **spent)
                step += 1
                if block.excess_ms:
                    found.slowed.append((begin, now))
                if not block.lost_by:
                    own = block.excess_ms if self.slow == "late" else 0  # it works longer
                    found.useful_gpu_ms += self.gpus * block.ms + own
            elif block.kind == "save":
                saved = step - 1
                say("phase", phase="ckpt_save", **spent)
                say("ckpt.durable", step=saved)
            elif block.kind == "pause":
                say("phase", phase="data_wait", **spent)
            elif block.kind == "gap":
                found.idle.append((begin, now))
            elif block.kind == "crash":
                say("failure", kind="exception")
                attempt, step = attempt + 1, saved + 1
                say("job.start")
                now += block.restart_ms
                say("phase", phase="restore", dur_ms=block.restart_ms // 2, at=now - 700)
        found.end_ms = now + TEARDOWN_MS
        return found


def make(seed):
    """Make the run of a seed; each of its losses is large enough to be a finding."""
    dice = random.Random(seed)  # noqa: S311 -- chance, and no secret
    while True:
        run = _make(dice)
        held = run.gpus * run.reported().end_ms
        if all(ms > 0.02 * held for ms in run.gives_back().values()):
            return run


def _make(dice):
    gpus, slow = dice.choice([2, 2, 3, 4]), dice.choice(["throttled", "late"])
    usual = dice.randrange(17_000, 23_000)
    jitter = 0 if slow == "throttled" else 150  # throttling is judged by the median step
    crashes, state = dice.choice([0, 1, 2]), dice.choice(["COMPLETED", "TIMEOUT"])
    blocks = []
    for life in range(crashes + 1):
        is_last = life == crashes
        loser = ("limit" if state == "TIMEOUT" else "") if is_last else "crashes"
        kept = dice.choice([20, 30] if is_last else [0, 20, 30])
        lost = dice.randrange(4, 9) if loser else 0
        for number in range(kept + lost):
            waits = number > 0 and dice.random() < 0.4
            # a first step over the median of the next ten would be start-up
            ms = usual + (dice.randrange(-jitter, jitter + 1) if number else -jitter)
            data_ms = dice.randrange(1_000, 4_000) if waits else 0
            excess_ms = dice.randrange(4_000, 9_000) if 5 < number < 15 and is_last else 0
            blocks.append(Block("step", ms, data_ms, excess_ms, loser if number >= kept else ""))
            if number < kept and (number + 1) % 10 == 0:
                blocks.append(Block("save", SAVE_MS))
            elif number < kept + lost - 1 and dice.random() < 0.06:
                kind = dice.choice(["gap", "pause"])
                # an attempt that kept nothing failed with all that is in it
                of_end = "" if kept else "crashes"
                blocks.append(Block(kind, dice.randrange(60_000, 200_000), lost_by=of_end))
        if not is_last:
            times = dice.randrange(60_000, 300_000), dice.randrange(20_000, 90_000)
            blocks.append(Block("crash", times[0], restart_ms=times[1]))
    return Run(gpus, slow, state, tuple(blocks))


def load(evidence, run, name):
    """Load a run as job `name` on the node `name`."""
    report = run.reported()
    evidence.node(name, run.gpus)
    evidence.job(name, 0, report.end_ms / 1000, [name], run.gpus, state=run.state)
    for rank in range(run.gpus):
        events = [_event(event, run, rank) for event in report.events]
        own = {"gpu_uuid": f"{evidence.name}/{name}#{rank}"}
        evidence.events(name, events, rank=rank, host=name, **own)
        is_hot = run.slow == "throttled" and rank == HOT
        rows = [{"ts": ms / 1000, "engine_active_ratio": 0.9 * (not _is_in(report.idle, ms)),
                 "clocks_event_reasons": HW_THERMAL * (is_hot and _is_in(report.slowed, ms))}
                for ms in range(0, report.end_ms, READ_MS)]  # fmt: skip
        evidence.add("gpu_samples", *rows, source=f"dcgm{rank}", gpu_instance="", **own)


def _is_in(times, ms):
    return any(begin < ms <= end for begin, end in times)


def _event(event, run, rank):
    """Return what a rank says of an event, in seconds."""
    said = {k: v for k, v in event.items() if k not in {"at", "dur_ms", "block"}}
    said |= {"t": event["at"] / 1000, "dur_s": None, "data_s": None, "comm_s": None}
    if "dur_ms" in event:
        said["dur_s"] = event["dur_ms"] / 1000
    if block := event.get("block"):
        said["data_s"] = block.data_ms / 1000
        if run.slow == "late":
            said["comm_s"] = (COMM_MS + (block.excess_ms if rank != LATE else 0)) / 1000
    return said
