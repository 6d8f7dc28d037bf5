"""Faults and scripted jobs that the plan put into the fleet: a note for each."""

from datetime import datetime
from typing import Any

from goodput_ingest.synthetic.fleet import Fleet
from goodput_ingest.synthetic.habits import SECOND
from goodput_ingest.synthetic.lives import Life
from goodput_ingest.synthetic.outages import Silence
from goodput_ingest.synthetic.schedule import Schedule
from goodput_ingest.synthetic.written import nccl_benchmarks
from goodput_ingest.synthetic.written.hosts import LOST_PORT, LostLink


def notes(
    fleet: Fleet, schedule: Schedule, lives: list[Life], silences: list[Silence], start_s: int
) -> list[dict[str, Any]]:
    """Return the notes of stories, outages and silences; times in epoch milliseconds."""

    def ms(at_ms: float) -> int:
        return start_s * SECOND + int(at_ms)

    reported: list[dict[str, Any]] = []
    for life in lives:
        if not life.request.story:
            continue
        gpus = [fleet.gpu_uuids[int(fleet.unit_gpu[u])] for u in life.run.units]
        reported.append(
            {
                "kind": "story",
                "story": life.request.story,
                "job_id": str(life.request.job_id),
                "run_id": life.request.run_id,
                "state": life.run.state,
                "from_ms": ms(life.begin),
                "to_ms": ms(life.end),
                "gpu_uuids": gpus,
                "special_gpu_uuids": [gpus[place] for place in life.special],
                "steps": sum(len(attempt.steps) for attempt in life.attempts),
            }
        )
    reported += [
        {
            "kind": "outage",
            "state": outage.state,
            "node": fleet.nodes[outage.node].name,
            "from_ms": ms(outage.start_s * SECOND),
            "to_ms": None if outage.end_s is None else ms(outage.end_s * SECOND),
            "reason": outage.reason,
        }
        for outage in schedule.outages
    ]
    reported += [
        {
            "kind": f"silence: {silence.kind}",
            "node": fleet.nodes[silence.node].name,
            "from_ms": ms(silence.start_s * SECOND),
            "to_ms": ms(silence.end_s * SECOND),
        }
        for silence in silences
    ]
    return reported


def of_lost_link(fleet: Fleet, lost: LostLink | None, start_s: int) -> list[dict[str, Any]]:
    """Return the note of the InfiniBand link that is lost, if one is."""
    if lost is None:
        return []
    return [
        {
            "kind": "lost link",
            "node": fleet.nodes[lost.node].name,
            "device": LOST_PORT,
            "from_ms": (start_s + lost.start_s) * SECOND,
            "to_ms": (start_s + lost.end_s) * SECOND,
            "job_id": str(lost.job_id),
        }
    ]


def of_slow_node(fleet: Fleet, start: datetime) -> dict[str, Any]:
    """Return the note of the node on which nccl-tests is slower since a date."""
    node, since = nccl_benchmarks.slow_node(fleet, start)
    return {"kind": "slow node", "node": node, "from_ms": int(since.timestamp()) * SECOND}
