"""What each operation of a training step waits for, with data and pipeline parallelism.

The model is that of "Understanding Stragglers in Large Model Training Using What-if Analysis"
(OSDI 2025): compute of a stage runs in its recorded order; a receive waits for the compute before
it, a send for its own compute, and both ends of a transfer end together; gradients are reduced
after the last compute and over all data parallel ranks. One model stage a worker: virtual stages
and gradients that are reduced during the backward pass are not modelled.
"""

from collections import defaultdict
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

FORWARD, BACKWARD = "forward-compute", "backward-compute"
COMPUTE = (FORWARD, BACKWARD)
TRANSFERS = ("forward-send", "forward-recv", "backward-send", "backward-recv")
GATHER, EMBEDDING = "params-all-gather", "embedding-grads-all-reduce"
REDUCE, CLIP, OPTIMIZER = "grads-reduce-scatter", "optimizer-clip-main-grad", "optimizer"
LAYERNORM, COLLECT = "layernorm-grads-all-reduce", "gc"
AFTER_COMPUTE = (COLLECT, LAYERNORM, EMBEDDING, REDUCE, CLIP, OPTIMIZER)
COMMUNICATION = (*TRANSFERS, GATHER, EMBEDDING, LAYERNORM, REDUCE, CLIP)
OVER_DATA_RANKS = (GATHER, REDUCE, CLIP)  # end together on all data parallel ranks
KINDS = (*COMPUTE, *TRANSFERS, GATHER, *AFTER_COMPUTE)


class UnknownShapeError(ValueError):
    """The operations of a step are none that the model knows."""


@dataclass(frozen=True)
class Operation:
    """One operation of a data parallel group in a step; `place`: among those of its kind."""

    kind: str
    place: int
    stage: int


@dataclass(frozen=True)
class Step:
    """The operations of a step of one data parallel group, and what they wait for.

    operations: in the recorded order; waits_for: places of operations by the place of one
    groups: places of operations that end together, each group after all that it waits for
    """

    operations: list[Operation]
    waits_for: list[list[int]]
    groups: list[tuple[int, ...]]

    def places(self, kind: str | None = None, stage: int | None = None) -> list[int]:
        """Return the places of operations of a kind, a stage or both."""
        return [
            place
            for place, of in enumerate(self.operations)
            if (kind is None or of.kind == kind) and (stage is None or of.stage == stage)
        ]


def step_of(operations: list[Operation]) -> Step:
    """Return the model of a step; raises UnknownShapeError where it has another shape."""
    place = {operation: number for number, operation in enumerate(operations)}
    if len(place) != len(operations):
        raise UnknownShapeError("an operation is there twice")
    waits_for: list[list[int]] = [[] for _ in operations]
    of_stage: dict[int, list[Operation]] = defaultdict(list)
    for operation in operations:
        of_stage[operation.stage].append(operation)
    stages = len(of_stage)
    if sorted(of_stage) != list(range(stages)):
        raise UnknownShapeError("pipeline stages have gaps")
    for stage, found in of_stage.items():
        for before, after in _in_stage(found):
            waits_for[place[after]].append(place[before])
        if not any(of.kind == OPTIMIZER for of in found):
            raise UnknownShapeError(f"stage {stage} has no operation {OPTIMIZER}")
    groups = _groups(place, stages)
    return Step(operations, waits_for, _in_order(groups, waits_for))


def _in_stage(found: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Return pairs of operations of a stage, of which the second waits for the first."""
    compute = [of for of in found if of.kind in COMPUTE]
    if not compute:
        raise UnknownShapeError("a stage has no compute")
    pairs = list(pairwise(compute))
    for way, of_way in (("forward", FORWARD), ("backward", BACKWARD)):
        own = [of for of in compute if of.kind == of_way]
        for kind in (f"{way}-recv", f"{way}-send"):
            transfers = [of for of in found if of.kind == kind]
            if len(transfers) not in (0, len(own)):
                raise UnknownShapeError(
                    f"stage {own[0].stage if own else 0} has {len(transfers)} {kind} and "
                    f"{len(own)} {of_way}"
                )
            pairs += pairwise(transfers)
            if kind.endswith("send"):
                pairs += zip(own, transfers, strict=False)
            else:
                pairs += zip(transfers, own, strict=False)
                pairs += zip(own, transfers[1:], strict=False)
    gathers = [of for of in found if of.kind == GATHER]
    chain = [of for kind in AFTER_COMPUTE for of in found if of.kind == kind]
    pairs += [(gather, compute[0]) for gather in gathers]
    pairs += zip([compute[-1], *chain], chain, strict=False)
    return pairs


def _groups(place: dict[Operation, int], stages: int) -> list[tuple[int, ...]]:
    """Return the places of operations that end together."""
    together: dict[object, list[int]] = defaultdict(list)
    for of, number in place.items():
        if of.kind in TRANSFERS:
            way, end = of.kind.split("-")
            step = 1 if (way == "forward") == (end == "send") else -1
            peer = of.stage + step
            if not 0 <= peer < stages:
                raise UnknownShapeError(f"{of.kind} of stage {of.stage} has no peer")
            together[way, of.place, frozenset((of.stage, peer))].append(number)
        elif of.kind == CLIP or (of.kind == EMBEDDING and of.stage in (0, stages - 1)):
            together[of.kind, of.place].append(number)
        else:
            together[of].append(number)
    return [tuple(group) for group in together.values()]


def _in_order(groups: list[tuple[int, ...]], waits_for: list[list[int]]) -> list[tuple[int, ...]]:
    group_of = {place: group for group in groups for place in group}
    before = {
        group: {group_of[other] for place in group for other in waits_for[place]}
        for group in groups
    }
    return list(TopologicalSorter(before).static_order())
