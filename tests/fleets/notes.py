"""Faults and scripted jobs that the plan put into the fleet: a note for each."""

from collections.abc import Callable, Iterator
from typing import Any

from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.world import World
from goodput_synthetic.fleet.written import nccl_benchmarks
from goodput_synthetic.fleet.written.hosts import LOST_PORT, lost_link


def stories(world: World, ms: Callable[[float], int]) -> Iterator[dict[str, Any]]:
    """Yield a note of each scripted job."""
    for life in world.lives:
        if not life.request.story:
            continue
        gpus = [world.fleet.gpu_uuids[int(world.fleet.unit_gpu[u])] for u in life.run.units]
        yield {
            "kind": "story", "story": life.request.story, "job_id": str(life.request.job_id),
            "run_id": life.request.run_id, "state": life.run.state,
            "from_ms": ms(life.begin), "to_ms": ms(life.end),
            "gpu_uuids": gpus, "special_gpu_uuids": [gpus[place] for place in life.special],
            "steps": sum(len(attempt.steps) for attempt in life.attempts),
        }  # fmt: skip


def notes(world: World) -> list[dict[str, Any]]:
    """Return the notes of stories, outages, silences and faults; times in epoch milliseconds."""
    fleet = world.fleet

    def ms(at_ms: float) -> int:
        return world.start_s * SECOND + int(at_ms)

    reported: list[dict[str, Any]] = [*stories(world, ms)]
    reported += [
        {
            "kind": "outage", "state": outage.state, "node": fleet.nodes[outage.node].name,
            "from_ms": ms(outage.start_s * SECOND),
            "to_ms": None if outage.end_s is None else ms(outage.end_s * SECOND),
            "reason": outage.reason,
        }
        for outage in world.schedule.outages
    ]  # fmt: skip
    reported += [
        {
            "kind": f"silence: {silence.kind}", "node": fleet.nodes[silence.node].name,
            "from_ms": ms(silence.start_s * SECOND), "to_ms": ms(silence.end_s * SECOND),
        }
        for silence in world.quiet
    ]  # fmt: skip
    reported += world.kernels.notes
    if world.has_faults and (lost := lost_link(world.schedule, world.total_s)) is not None:
        reported.append({
            "kind": "lost link", "node": fleet.nodes[lost.node].name, "device": LOST_PORT,
            "from_ms": ms(lost.start_s * SECOND), "to_ms": ms(lost.end_s * SECOND),
            "job_id": str(lost.job_id),
        })  # fmt: skip
    node, since = nccl_benchmarks.slow_node(fleet, world.start)  # by nccl-tests, since a date
    slow = {"kind": "slow node", "node": node, "from_ms": int(since.timestamp()) * SECOND}
    return [*reported, slow]
