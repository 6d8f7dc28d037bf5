"""The true ledger, computed from the plan: what evidence can show of what every GPU did.

`expected` is what the ledger says of it by the accounting rules, from the evidence that this fleet
leaves: a job without events is busy or idle by its readings, and unknown where there were none.
Nothing here reads what the product wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from tests.fleets.accounts import EVERYBODY, FIRST_RANK, OTHERS, SPECIAL, book, saves
from tests.fleets.categories import CATEGORIES, CODE, TELEMETRY

from goodput_synthetic.fleet.fleet import CPUS_PER_NODE, SLICES, Fleet, Ints
from goodput_synthetic.fleet.habits import SECOND
from goodput_synthetic.fleet.lives import Life
from goodput_synthetic.fleet.schedule import Schedule
from goodput_synthetic.fleet.scrapes import Scrapes
from goodput_synthetic.fleet.world import World

REACH = 2.5  # intervals that a reading covers back at most (threshold sample_reach)
IDLE_MIN_MS = 300 * SECOND
PAUSE_INTERVAL_MAX_MS = 60 * SECOND
# later ones win
NODE_STATES = ("reserved", "powered_off", "drained", "maintenance", "down")
STATE_CATEGORY = {"reserved": "reserved_idle"}
FOREVER = 2**40
Intervals = list[list[tuple[int, int]]]


@dataclass(frozen=True)
class Rows:
    """Pieces of GPU time as columns: unit, when, the expected category, whose."""

    unit: Ints
    start: Ints
    end: Ints
    expected: Ints
    life: Ints

    def pick(self, index: npt.NDArray[np.bool_] | Ints) -> Rows:
        """Return some of the rows."""
        return Rows(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    @staticmethod
    def joined(parts: list[Rows]) -> Rows:
        """Return rows one after the other."""
        names = Rows.__dataclass_fields__
        return Rows(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def true_ledger(world: World) -> pl.DataFrame:
    """Return the truth as a frame sorted by GPU and time: times in epoch milliseconds."""
    fleet, lives, total_ms = world.fleet, world.lives, world.total_s * SECOND
    held = _settled(_held(lives, world.scrapes), fleet, world.scrapes, total_ms)
    rows = Rows.joined([held, _free(fleet, world.schedule, lives, total_ms)])
    rows = rows.pick(np.lexsort((rows.start, rows.unit)))
    return _frame(_merged(rows), fleet, lives, world.start_s * SECOND)


def _held(lives: list[Life], scrapes: Scrapes) -> Rows:
    parts, seen = [], saves(lives)
    for i, life in enumerate(lives):
        units = np.array(life.run.units, dtype=np.int64)
        special = np.isin(np.arange(len(units)), life.special)
        for who, pieces in book(life, scrapes, seen).items():
            chosen = {EVERYBODY: units, SPECIAL: units[special], OTHERS: units[~special]}
            own = units[who - FIRST_RANK : who - FIRST_RANK + 1]
            parts.append(_spread(pieces, chosen.get(who, own), i))
    return Rows.joined(parts)


def _spread(pieces: Ints, units: Ints, life: int) -> Rows:
    columns = np.tile(pieces, (len(units), 1)).T  # start, end, category
    whose = np.full(len(units) * len(pieces), life, dtype=np.int64)
    return Rows(np.repeat(units, len(pieces)), *columns, whose)


def _settled(rows: Rows, fleet: Fleet, scrapes: Scrapes, total_ms: int) -> Rows:
    """Return the rows with what telemetry has to settle settled by what was read."""
    is_telemetry = np.isin(rows.expected, list(TELEMETRY))
    rest, asked = rows.pick(~is_telemetry), rows.pick(is_telemetry)
    node = fleet.unit_node[asked.unit]
    asked = overlay(asked, node, _unseen(scrapes, total_ms), expected=CODE["unknown"])
    is_idle = asked.expected == CODE["telemetry idle"]
    # two readings show a pause, unless they are far apart
    interval_ms = scrapes.interval_ms
    least_ms = 2 * interval_ms if interval_ms <= PAUSE_INTERVAL_MAX_MS else IDLE_MIN_MS
    is_long = asked.end - asked.start >= least_ms
    expected = asked.expected.copy()
    expected[is_idle & is_long] = CODE["idle_held"]
    is_busy = (is_idle & ~is_long) | (expected == CODE["telemetry busy"])
    expected[is_busy] = CODE["busy_unclassified"]
    return Rows.joined([rest, Rows(asked.unit, asked.start, asked.end, expected, asked.life)])


def _unseen(scrapes: Scrapes, total_ms: int) -> Intervals:
    """Return for each node the times that no reading covers."""
    reach = int(scrapes.interval_ms * REACH)
    found = []
    for at, is_seen in zip(scrapes.at, scrapes.is_read & scrapes.is_profiled, strict=True):
        seen = at[is_seen]
        if not len(seen):
            found.append([(0, total_ms)])
            continue
        holes = np.flatnonzero(np.diff(seen) > reach)
        inside = [(int(seen[i]), int(seen[i + 1]) - reach) for i in holes]
        found.append([(0, int(seen[0])), *inside, (int(seen[-1]), total_ms)])
    return found


def _free(fleet: Fleet, schedule: Schedule, lives: list[Life], total_ms: int) -> Rows:
    """Return the time of each unit that was not allocated, by why it stayed free."""
    units = len(fleet.unit_gpu)
    unit = np.concatenate([np.array(life.run.units, dtype=np.int64) for life in lives])
    sizes = [len(life.run.units) for life in lives]
    start = np.repeat([life.begin for life in lives], sizes)
    end = np.repeat([life.end for life in lives], sizes)
    everyone = np.arange(units + len(fleet.rests))
    unit = np.concatenate([unit, everyone, everyone])
    start = np.concatenate([start, np.full(len(everyone), -1), np.full(len(everyone), total_ms)])
    end = np.concatenate([end, np.zeros(len(everyone)), np.full(len(everyone), total_ms + 1)])
    order = np.lexsort((start, unit))
    unit, start, end = unit[order], start[order], end[order].astype(np.int64)
    is_gap = (unit[1:] == unit[:-1]) & (start[1:] > end[:-1])
    at = np.flatnonzero(is_gap)
    code = np.full(len(at), CODE["idle_no_demand"], dtype=np.int64)
    rows = Rows(unit[at], end[at], start[at + 1], code, np.full(len(at), -1))
    node_of = np.concatenate(
        [fleet.unit_node, np.array([g // 8 for g, _ in fleet.rests], dtype=np.int64)]
    )
    for category, facts in _facts(fleet, schedule, total_ms):
        rows = overlay(rows, node_of[rows.unit], facts, expected=CODE[category])
        if category == "stranded":
            rows.expected[rows.unit >= units] = CODE["stranded"]
    return rows


def _facts(fleet: Fleet, schedule: Schedule, total_ms: int) -> list[tuple[str, Intervals]]:
    """Return what is true of nodes and when, the weakest first."""
    demand = _demand(schedule, total_ms)
    stranded: Intervals = [[] for _ in fleet.nodes]
    for run in schedule.runs:
        if run.start_s is None or len(run.nodes) != 1 or run.request.cpus < CPUS_PER_NODE:
            continue
        end = total_ms if run.end_s is None else run.end_s * SECOND
        stranded[run.nodes[0]].append((run.start_s * SECOND, end))
    found = [
        ("idle_with_demand", [demand.get(node.pool, []) for node in fleet.nodes]),
        ("stranded", stranded),
    ]
    for state in NODE_STATES:
        when: Intervals = [[] for _ in fleet.nodes]
        for outage in schedule.outages:
            if outage.state == state:
                end = total_ms if outage.end_s is None else outage.end_s * SECOND
                when[outage.node].append((outage.start_s * SECOND, end))
        found.append((STATE_CATEGORY.get(state, state), when))
    return found


def _demand(schedule: Schedule, total_ms: int) -> dict[str, list[tuple[int, int]]]:
    """Return when some eligible job waited for each pool's GPUs, instances of MIG left out."""
    waits: dict[str, list[tuple[int, int]]] = {}
    for run in schedule.runs:
        until_s = run.end_s if run.start_s is None else run.start_s
        until = total_ms if until_s is None else until_s * SECOND
        if until > run.eligible_s * SECOND and run.request.gres_type in ("h100", "h200"):
            waits.setdefault(run.request.pool, []).append((run.eligible_s * SECOND, until))
    return waits


def overlay(rows: Rows, key: Ints, intervals: Intervals, *, expected: int) -> Rows:
    """Return the rows cut at the intervals of their key, with the category inside them replaced."""
    union = [_union(found) for found in intervals]
    flat = [k * FOREVER + t for k, found in enumerate(union) for pair in found for t in pair]
    bounds = np.array(flat, dtype=np.int64)
    low = np.searchsorted(bounds, key * FOREVER + rows.start, side="right")
    high = np.searchsorted(bounds, key * FOREVER + rows.end, side="left")
    count = high - low + 1
    index = np.repeat(np.arange(len(low)), count)
    place = np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
    padded = np.concatenate([[0], bounds, [0]]) % FOREVER
    start = np.where(place == 0, rows.start[index], padded[low[index] + place])
    is_last = place == count[index] - 1
    end = np.where(is_last, rows.end[index], padded[low[index] + place + 1])
    is_inside = (low[index] + place) % 2 == 1
    new = np.where(is_inside, expected, rows.expected[index])
    return Rows(rows.unit[index], start, end, new, rows.life[index])


def _union(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the intervals as disjoint ones, in order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _merged(rows: Rows) -> Rows:
    """Return the rows with neighbours joined that say the same."""
    is_new = np.ones(len(rows.unit), dtype=np.bool_)
    is_new[1:] = ~(
        (rows.unit[1:] == rows.unit[:-1])
        & (rows.start[1:] == rows.end[:-1])
        & (rows.expected[1:] == rows.expected[:-1])
        & (rows.life[1:] == rows.life[:-1])
    )
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(rows.unit)) - 1
    return replace(rows.pick(first), end=rows.end[last])


def _frame(rows: Rows, fleet: Fleet, lives: list[Life], start_ms: int) -> pl.DataFrame:
    gpu = np.concatenate([fleet.unit_gpu, np.array([g for g, _ in fleet.rests], dtype=np.int64)])
    instance = pl.Series([*fleet.unit_instance, *["rest"] * len(fleet.rests)])
    slices = np.concatenate(
        [fleet.unit_slices, np.array([SLICES - lo for _, lo in fleet.rests], dtype=np.int64)]
    )
    jobs = pl.Series([*(str(life.request.job_id) for life in lives), None], dtype=pl.String)
    runs = pl.Series([*(life.request.run_id for life in lives), None], dtype=pl.String)
    whose = np.where(rows.life < 0, len(lives), rows.life)
    return pl.DataFrame({
        "gpu_uuid": pl.Series(fleet.gpu_uuids).gather(gpu[rows.unit]),
        "gpu_instance": instance.gather(rows.unit), "slices": slices[rows.unit],
        "start_ms": rows.start + start_ms, "end_ms": rows.end + start_ms,
        "expected": pl.Series(CATEGORIES).gather(rows.expected),
        "job_id": jobs.gather(whose), "run_id": runs.gather(whose),
    })  # fmt: skip
