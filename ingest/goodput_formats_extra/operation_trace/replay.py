"""Steps of a trace again, with operations at other lengths: what each of them cost.

Lengths are arrays (operation, data parallel rank, step). An operation of communication has its
transfer alone, from the moment at which all its members have come. Ideal lengths are the mean of
compute and the median of communication over all workers and steps (the published method).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_formats_extra.operation_trace.dependencies import (
    COMMUNICATION,
    COMPUTE,
    OPTIMIZER,
    OVER_DATA_RANKS,
    Step,
)

Lengths = NDArray[np.float64]

CLOCK_ERROR_S = 0.01  # a transfer that ends so long before its last member came has no length
WORST_SHARE = 0.03  # of workers, that are the slow ones of a job (M_W of the paper)


@dataclass(frozen=True)
class Trace:
    """The recorded steps: when each operation started and ended."""

    step: Step
    start_s: Lengths
    end_s: Lengths

    def lengths(self) -> Lengths:
        """Return the own length of each operation: of communication without the wait for others."""
        found = self.end_s - self.start_s
        for group in self.step.groups:
            kind = self.step.operations[group[0]].kind
            if kind not in COMMUNICATION:
                continue
            begin = self.start_s[list(group)].max(axis=0)
            if kind in OVER_DATA_RANKS:
                begin = begin.max(axis=0, keepdims=True)
            for place in group:
                transfer = self.end_s[place] - begin
                found[place] = np.where(transfer <= -CLOCK_ERROR_S, 0.0, transfer)
        return found

    def delays(self) -> Lengths:
        """Return how long each operation started after all that it waits for."""
        found = np.zeros_like(self.start_s)
        begin = self.start_s.min(axis=(0, 1))
        for place, others in enumerate(self.step.waits_for):
            ready = self.end_s[others].max(axis=0) if others else begin
            found[place] = self.start_s[place] - ready
        return found


class Replay:
    """Steps replayed with the lengths that are given."""

    def __init__(self, trace: Trace) -> None:
        """Take the trace; the ideal is of all its steps."""
        self.step = trace.step
        self.recorded = trace.lengths()
        self.delays = trace.delays()
        self.ideal = self.means(by_stage=False, by_worker=False)
        self.ideal_ends = self.ends(self.ideal)
        self.ideal_s = float(self.step_times(self.ideal_ends).mean())
        self.undelayed = self.step_times(self.ends(self.recorded))

    def ends(
        self, lengths: Lengths, *, delays: Lengths | None = None, is_alone: bool = False
    ) -> Lengths:
        """Return when each operation ends; `is_alone`: other data parallel ranks are ideal."""
        found = np.zeros_like(lengths)
        for group in self.step.groups:
            begin = np.zeros(lengths.shape[1:])
            for place in group:
                others = self.step.waits_for[place]
                ready = found[others].max(axis=0) if others else np.zeros_like(begin)
                begin = np.maximum(begin, ready if delays is None else ready + delays[place])
            if self.step.operations[group[0]].kind in OVER_DATA_RANKS:
                if is_alone:
                    place = group[0]
                    begin = np.maximum(begin, (self.ideal_ends - self.ideal)[place])
                else:
                    begin = np.broadcast_to(begin.max(axis=0, keepdims=True), begin.shape)
            for place in group:
                found[place] = begin + lengths[place]
        return found

    def step_times(self, ends: Lengths) -> Lengths:
        """Return the time of each step."""
        return np.asarray(ends[self.step.places(OPTIMIZER)].max(axis=(0, 1)))

    def mean(self, lengths: Lengths, delays: Lengths | None = None) -> float:
        """Return the mean time of a step with these lengths."""
        return float(self.step_times(self.ends(lengths, delays=delays)).mean())

    def means(self, *, by_stage: bool, by_worker: bool) -> Lengths:
        """Return mean lengths of compute, of each stage or worker or of all; the rest is ideal."""
        found = np.empty_like(self.recorded)
        kinds = {of.kind for of in self.step.operations}
        stages = {of.stage for of in self.step.operations}
        for kind in kinds:
            if kind in COMMUNICATION:
                places = self.step.places(kind)
                found[places] = np.median(self.recorded[places])
                continue
            for stage in stages if by_stage else (None,):
                places = self.step.places(kind, stage)
                axes = (0, 2) if by_worker else (0, 1, 2)
                if places:
                    found[places] = self.recorded[places].mean(axis=axes, keepdims=True)
        return found

    def only(self, places: list[int]) -> float:
        """Return the mean step where these operations are as recorded and all others ideal."""
        lengths = self.ideal.copy()
        lengths[places] = self.recorded[places]
        return self.mean(lengths)

    def without(self, places: list[int], ranks: list[int] | None = None) -> float:
        """Return the mean step where these operations, of all or some data ranks, are ideal."""
        lengths = self.recorded.copy()
        where = np.ix_(places, range(lengths.shape[1]) if ranks is None else ranks)
        lengths[where] = self.ideal[where]
        return self.mean(lengths)

    def workers(self) -> Lengths:
        """Return the mean step by (data rank, stage) where one worker alone is as recorded."""
        stages = sorted({of.stage for of in self.step.operations})
        found = []
        for stage in stages:
            lengths = self.ideal.copy()
            places = self.step.places(stage=stage)
            lengths[places] = self.recorded[places]
            ends = self.ends(lengths, is_alone=True)[self.step.places(OPTIMIZER)].max(axis=0)
            ideal = self.step_times(self.ideal_ends)
            found.append(np.maximum(ends, ideal).mean(axis=1))
        return np.stack(found, axis=1)

    def without_worst(self, workers: Lengths) -> float:
        """Return the mean step without the slowest workers: 3 % of them, at least one."""
        count = -(-workers.size * int(WORST_SHARE * 100) // 100)
        lengths = self.recorded.copy()
        for worker in np.argsort(-workers, axis=None, kind="stable")[:count]:
            rank, stage = divmod(int(worker), workers.shape[1])
            places = self.step.places(stage=stage)
            lengths[places, rank] = self.ideal[places, rank]
        return self.mean(lengths)

    def compute_recorded(self) -> Lengths:
        """Return recorded lengths of compute beside ideal communication."""
        found = self.recorded.copy()
        places = [p for kind in COMMUNICATION for p in self.step.places(kind)]
        found[places] = self.ideal[places]
        return found

    def correlation(self) -> float | None:
        """Return how far forward and backward of one micro-batch are long together, over a stage.

        Sequence lengths make both long; a slow processor or a pause hits one of them.
        """
        found = []
        for stage in {of.stage for of in self.step.operations}:
            a, b = (self.recorded[self.step.places(kind, stage)].ravel() for kind in COMPUTE)
            if a.size == b.size > 1 and np.ptp(a) > 0 and np.ptp(b) > 0:
                found.append(float(np.corrcoef(a, b)[0, 1]))
        return float(np.mean(found)) if found else None
