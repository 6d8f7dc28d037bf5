"""Training runs with losses put into them, in milliseconds, and the same runs without some of them.

What a fix gives back is the difference: the time that the run's GPUs were held and not useful, less
that of the run without the loss, with its gang at the usual step, its gaps and waits gone, no step
done twice. Nothing here knows how the product finds a loss.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from tests.queries.conftest import Evidence

START_MS, TEARDOWN_MS, SAVE_MS, COMM_MS, READ_MS = 41_000, 3_000, 2_013, 1_000, 5_000
HW_THERMAL = 0x40
LATE, HOT = 1, 0  # rank that is late, GPU that is throttled

# In the order in which they are taken away: what is in two of them is of the first.
LOSSES = ("gaps", "pauses", "crashes", "limit", "input", "slow")
OF_KIND = {"gap": "gaps", "pause": "pauses", "crash": "crashes"}


@dataclass(frozen=True)
class Block:
    """A part of a run: a step, a save, a gap, a wait for data between steps, or a crash.

    `is_lost`: of steps, and of what is among them, after the last save before an end.
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

    events: list[dict[str, Any]] = field(default_factory=list)
    end_ms: int = 0
    useful_gpu_ms: int = 0
    idle: list[tuple[int, int]] = field(default_factory=list)
    slowed: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """A run of one gang on one node; `slow`: what its slow steps wait for, throttled or late."""

    gpus: int
    slow: str
    state: str
    blocks: tuple[Block, ...]
    start_ms: int = START_MS

    def without(self, losses: tuple[str, ...]) -> Run:
        """Return the run without some of its losses.

        Without its crashes it starts as its first attempt did that kept something: an attempt that
        kept nothing is lost as a whole.
        """
        kept, start_ms, has_kept = [], self.start_ms, False
        for block in self.blocks:
            has_kept = has_kept or block.kind == "save"
            if block.kind == "crash" and "crashes" in losses and not has_kept:
                start_ms = block.restart_ms
            if (block.lost_by or OF_KIND.get(block.kind)) in losses:
                continue
            kept.append(
                replace(
                    block,
                    data_ms=0 if "input" in losses else block.data_ms,
                    excess_ms=0 if "slow" in losses else block.excess_ms,
                )
            )
        is_good = self.state == "TIMEOUT" and "limit" in losses
        state = "COMPLETED" if is_good else self.state
        return replace(self, blocks=tuple(kept), state=state, start_ms=start_ms)

    def wasted_gpu_ms(self) -> int:
        """Return the GPU time that was held and is not useful."""
        report = self.reported()
        return self.gpus * report.end_ms - report.useful_gpu_ms

    def gives_back(self) -> dict[str, int]:
        """Return what each loss costs once those before it are gone: they add up to all of it."""
        found, before = {}, self.wasted_gpu_ms()
        for count, loss in enumerate(LOSSES, 1):
            after = self.without(LOSSES[:count]).wasted_gpu_ms()
            found[loss], before = before - after, after
        return {loss: ms for loss, ms in found.items() if ms}

    def reported(self) -> Report:
        """Return what the run reports, from its start on."""
        found, now, step, saved, attempt = Report(), self.start_ms, 1, 0, 0
        found.events.append({"event": "job.start", "at": 1_000, "attempt": 0})
        for block in self.blocks:
            begin = now
            now += block.ms + block.data_ms + block.excess_ms
            common = {"at": now, "attempt": attempt}
            spent = {"dur_ms": now - begin, **common}
            if block.kind == "step":
                found.events.append({"event": "step", "step": step, "block": block, **spent})
                step += 1
                if block.excess_ms:
                    found.slowed.append((begin, now))
                if not block.lost_by:
                    own = block.excess_ms if self.slow == "late" else 0  # it works longer
                    found.useful_gpu_ms += self.gpus * block.ms + own
            elif block.kind == "save":
                saved = step - 1
                found.events.append({"event": "phase", "phase": "ckpt_save", **spent})
                found.events.append({"event": "ckpt.durable", "step": saved, **common})
            elif block.kind == "pause":
                found.events.append({"event": "phase", "phase": "data_wait", **spent})
            elif block.kind == "gap":
                found.idle.append((begin, now))
            elif block.kind == "crash":
                found.events.append({"event": "failure", "kind": "exception", **common})
                attempt, step = attempt + 1, saved + 1
                found.events.append({"event": "job.start", "at": now, "attempt": attempt})
                now += block.restart_ms
                restore = {"dur_ms": block.restart_ms // 2, "at": now - 700, "attempt": attempt}
                found.events.append({"event": "phase", "phase": "restore", **restore})
        found.end_ms = now + TEARDOWN_MS
        return found


def make(seed: int) -> Run:
    """Make the run of a seed; each of its losses is large enough to be a finding."""
    dice = random.Random(seed)  # noqa: S311 -- chance, and no secret
    while True:
        run = _make(dice)
        held = run.gpus * run.reported().end_ms
        if all(ms > 0.02 * held for ms in run.gives_back().values()):
            return run


def _make(dice: random.Random) -> Run:
    gpus = dice.choice([2, 2, 3, 4])
    slow = dice.choice(["throttled", "late"])
    usual = dice.randrange(17_000, 23_000)
    jitter = 0 if slow == "throttled" else 150  # throttling is judged by the median step
    crashes = dice.choice([0, 1, 2])
    state = dice.choice(["COMPLETED", "TIMEOUT"])
    blocks: list[Block] = []
    for life in range(crashes + 1):
        is_last = life == crashes
        loser = ("limit" if state == "TIMEOUT" else "") if is_last else "crashes"
        kept = dice.choice([20, 30] if is_last else [0, 20, 30])
        lost = dice.randrange(4, 9) if loser else 0
        for number in range(kept + lost):
            waits = number > 0 and dice.random() < 0.4
            blocks.append(
                Block(
                    "step",
                    # a first step over the median of the next ten would be start-up
                    usual + (dice.randrange(-jitter, jitter + 1) if number else -jitter),
                    dice.randrange(1_000, 4_000) if waits else 0,
                    dice.randrange(4_000, 9_000) if 5 < number < 15 and life == crashes else 0,
                    loser if number >= kept else "",
                )
            )
            is_end = number == kept + lost - 1
            if number < kept and (number + 1) % 10 == 0:
                blocks.append(Block("save", SAVE_MS))
            elif not is_end and dice.random() < 0.06:
                kind = dice.choice(["gap", "pause"])
                # an attempt that kept nothing failed with all that is in it
                of_end = "" if kept else "crashes"
                blocks.append(Block(kind, dice.randrange(60_000, 200_000), lost_by=of_end))
        if not is_last:
            times = dice.randrange(60_000, 300_000), dice.randrange(20_000, 90_000)
            blocks.append(Block("crash", times[0], restart_ms=times[1]))
    return Run(gpus, slow, state, tuple(blocks))


def load(evidence: Evidence, run: Run, name: str) -> None:
    """Load a run as job `name` on the node `name`."""
    report = run.reported()
    evidence.node(name, run.gpus)
    evidence.job(name, 0, report.end_ms / 1000, [name], run.gpus, state=run.state)
    for rank in range(run.gpus):
        events = [_event(event, run, rank) for event in report.events]
        own = {"rank": rank, "host": name, "gpu_uuid": f"{evidence.name}/{name}#{rank}"}
        evidence.events(name, events, **own)
        evidence.load(
            "gpu_samples",
            [
                {
                    "gpu_uuid": f"{evidence.name}/{name}#{rank}",
                    "gpu_instance": "",
                    "ts": evidence.at(ms / 1000),
                    "engine_active_ratio": 0.0 if _is_in(report.idle, ms) else 0.9,
                    "clocks_event_reasons": HW_THERMAL
                    if run.slow == "throttled" and rank == HOT and _is_in(report.slowed, ms)
                    else 0,
                }
                for ms in range(0, report.end_ms, READ_MS)
            ],
            f"dcgm{rank}",
        )


def _is_in(times: list[tuple[int, int]], ms: int) -> bool:
    return any(begin < ms <= end for begin, end in times)


def _event(event: dict[str, Any], run: Run, rank: int) -> dict[str, Any]:
    """Return what a rank says of an event, in seconds."""
    said = {k: v for k, v in event.items() if k not in {"at", "dur_ms", "block"}}
    said["t"] = event["at"] / 1000
    said["dur_s"] = event["dur_ms"] / 1000 if "dur_ms" in event else None
    block = event.get("block")
    said["data_s"] = block.data_ms / 1000 if block else None
    waits = block and run.slow == "late"
    others = block.excess_ms if waits and rank != LATE else 0
    said["comm_s"] = (COMM_MS + others) / 1000 if waits else None
    return said
