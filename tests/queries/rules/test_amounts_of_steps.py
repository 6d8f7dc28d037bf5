"""Stretches of steps are amounts in the ledger: those of their intervals, to the millisecond.

The definition here knows no stretch, cell or amount: each moment of an allocated GPU is in the
piece of its attempt's timeline, and in a step in the split that has it.
"""

import random
from collections import Counter

import pytest
from tests.queries.conftest import START_MS, Evidence, durable, phase, steps

from goodput_queries.scope import Scope

HOUR_MS = 3_600_000
END_S = 2 * 3600
WINDOWS = 12
SEEDS = range(6)
AMOUNTS = """select gpu_uuid, gpu_instance, attempt_key, category, phase, sum(gpu_ms)::bigint as ms
    from marts.ledger_owned where not is_by_node and attempt_key is not null
    group by all having ms <> 0"""


def attempt_events(of, begin, end, first, ranks):
    """Return events of an attempt: steps of several lengths, with waits, saves, gaps, a failure."""
    found = []
    length, now, step = of.choice([0.7, 3.0, 20.0, 75.0]), begin, first
    while now + 2 * length < end:
        step += 1
        took = length * of.uniform(0.8, 1.3)
        data = {"data_s": round(took * of.choice([0, 0.03, 0.3]), 4)} if of.random() < 0.9 else {}
        for rank in range(ranks):
            row = {
                "event": "step", "step": step, "t": round(now + took, 3), "dur_s": round(took, 3),
                "rank": rank, "host": "a", **data,
            }  # fmt: skip
            shares = {"comm_s": (0.8, 0.3), "straggler_s": (0.2, 0.2), "throttle_s": (0.03, 0.2)}
            for name, (often, share) in shares.items():
                if of.random() < often:
                    row[name] = round(took * of.uniform(0, share), 4)
            found.append(row)
        now += took
        if of.random() < 0.03:
            saved = now + of.uniform(1, 90)
            found.append(phase("ckpt_save", round(now, 3), round(saved, 3)))
            found += [durable(step, round(saved, 3))] if of.random() < 0.8 else []
            now = saved
        if of.random() < 0.02:  # declared while steps go on
            found.append(phase("eval", round(now - took / 2, 3), round(now + of.uniform(1, 50), 3)))
        if of.random() < 0.02:
            now += of.uniform(0.5, 200)
    return sorted(found, key=lambda event: event["t"])


def world(cluster, seed):
    """Load GPUs, one in shares, and jobs; return the events of each attempt, to be loaded."""
    of = random.Random(seed)  # noqa: S311 -- test data
    cluster.node("a", 4)
    shares = [
        {"gpu_instance": f"share.{k}/3", "profile": "shared 1/3", "compute_slices": 1,
         "slices_of": 3, "slurm_index": 3 + k}
        for k in range(3)
    ]  # fmt: skip
    cluster.add("gpu_instances", *shares, source="inventory", gpu_uuid="a#3", valid_from_at=0)
    cluster.watched(END_S)
    events = []
    for job, gpus in (("1", 2), ("2", 1), ("3", 3)):
        begin = of.uniform(0, 900)
        end = min(END_S - 1, begin + of.choice([1500, 4000, 6500]))
        cluster.job(job, begin, end, ["a"], gpus, state=of.choice(["COMPLETED", "FAILED"]))
        attempts, ranks, step = of.choice([1, 2, 3]), of.choice([1, gpus]), 0
        for attempt in range(attempts):
            at = begin + (end - begin) * attempt / attempts + of.uniform(5, 60)
            until = begin + (end - begin) * (attempt + 1) / attempts - of.uniform(5, 60)
            rows = attempt_events(of, at, until, step, ranks)
            events.append((job, attempt, rows))
            step = max((row["step"] for row in rows if row["event"] == "ckpt.durable"), default=0)
    return events


def expected(cluster, first, last):
    """Return milliseconds by GPU, attempt, category and phase, from the intervals themselves."""
    pieces = {}
    for run, *piece in cluster.store.read(
        f"""select job_run_key, attempt_key, category, phase, start_ms, coalesce(end_ms, {last})
        from intermediate.int_run_timeline where starts_with(job_run_key, $1)""",
        [f"{cluster.name}/"],
    ).rows():
        pieces.setdefault(run, []).append(tuple(piece))
    splits = {}
    for attempt, *split in cluster.store.read(
        """select attempt_key, gpu_uuid, category, phase, start_ms, end_ms
        from intermediate.int_step_splits where starts_with(attempt_key, $1) order by start_ms""",
        [f"{cluster.name}/"],
    ).rows():
        splits.setdefault(attempt, []).append(tuple(split))
    holds = cluster.store.read(
        f"""select gpu_uuid, gpu_instance, job_run_key, start_ms, coalesce(end_ms, {last})
        from intermediate.int_holds where starts_with(job_run_key, $1)""",
        [f"{cluster.name}/"],
    ).rows()
    found = Counter()
    for gpu, instance, run, start, end in holds:
        for attempt, category, phase_of, piece_start, piece_end in pieces.get(run, []):
            begin, until = max(first, start, piece_start), min(last, end, piece_end)
            if until <= begin:
                continue
            found[gpu, instance, attempt, category, phase_of] += until - begin
            if category != "step_unsplit":
                continue
            for of_gpu, split, why, split_start, split_end in splits.get(attempt, []):
                ms = min(until, split_end) - max(begin, split_start)
                if ms > 0 and of_gpu in (None, gpu):
                    found[gpu, instance, attempt, split, why] += ms
                    found[gpu, instance, attempt, category, phase_of] -= ms
    return +found


def differences(cluster, first, last):
    """Return where the ledger of a window differs; of a share, by more than its rounding.

    A share is rounded once in each segment of an hour.
    """
    scope = Scope(first, last, cluster=cluster.name)
    given = cluster.read(AMOUNTS, scope)
    found = {(gpu, part, *rest): ms for gpu, part, *rest, ms in given.rows()}
    wanted = expected(cluster, first, last)
    hours = (last - 1) // HOUR_MS - first // HOUR_MS
    segments = dict(
        cluster.read(
            """select attempt_key, count(distinct coalesce(stretch_ms, start_ms))
            from intermediate.int_run_timeline group by all"""
        ).rows()
    )
    return [
        (key, found.get(key, 0), wanted[key])
        for key in found.keys() | wanted.keys()
        if abs(found.get(key, 0) - wanted[key] / (3 if key[1] else 1))
        > (hours + segments[key[2]] if key[1] else 0)
    ]


def windows(seed):
    """Return windows with borders at any millisecond, from seconds to the whole time."""
    of = random.Random(seed)  # noqa: S311 -- test data
    found = [(START_MS, START_MS + END_S * 1000)]
    for _ in range(WINDOWS):
        first = START_MS + of.randrange(END_S * 1000)
        found.append((first, min(START_MS + END_S * 1000, first + int(10 ** of.uniform(3, 7)))))
    return found


@pytest.fixture(scope="module")
def worlds(new_store):
    """Give a cluster for each seed, in one database."""
    store = new_store()
    made = [Evidence(store, f"c{seed}") for seed in SEEDS]
    for seed, cluster in enumerate(made):
        for job, attempt, rows in world(cluster, seed):
            cluster.events(job, rows, attempt=attempt)
    store.build()
    yield made
    store.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_amounts_are_those_of_the_intervals_in_any_window(worlds, seed):
    assert [found for w in windows(seed) if (found := differences(worlds[seed], *w))] == []
    assert worlds[seed].violations() == 0


@pytest.fixture
def built_in_parts(new_evidence):
    """Give what builds a world as often as its events come, and returns the rows of its stages."""

    def rows_of(count):
        of = new_evidence()
        given = world(of, 7)
        for part in range(count):
            for job, attempt, rows in given:
                some = rows[len(rows) * part // count : len(rows) * (part + 1) // count]
                of.events(job, some, attempt=attempt)
            of.build()
        stages = ("int_ledger_segments", "int_step_amounts")
        return [of.read(f"from intermediate.{stage} order by all").rows() for stage in stages]

    return rows_of


@pytest.fixture
def at_once(built_in_parts):
    return built_in_parts(1)


def test_a_build_of_what_came_later_has_the_same_amounts(built_in_parts, at_once):
    assert built_in_parts(2) == at_once


def test_a_stretch_of_steps_is_one_segment_an_hour_whatever_their_number(evidence):
    evidence.node("a", 2)
    for job, (count, length) in enumerate([(10, 60.0), (1000, 0.6)]):
        rows = [
            {"event": "step", "step": k, "t": 10 + k * length, "dur_s": length, "comm_s": 0.1}
            for k in range(1, count + 1)
        ]
        evidence.job(str(job), 0, 620, ["a"], 1)
        evidence.events(str(job), [*rows, durable(count, 610)])
    evidence.build()

    found = evidence.read(
        """select attempt_key, count(*) as segments from intermediate.int_ledger_segments
        where category = 'stepping' group by all"""
    )
    assert found["segments"].to_list() == [1, 1]


def test_nothing_that_people_read_has_a_category_stepping(worlds):
    evidence = worlds[1]
    scope = Scope(START_MS + 1, START_MS + END_S * 1000 - 1, "c1", bucket_ms=60_000)

    views = evidence.read(
        """select distinct schema_name || '.' || table_name from duckdb_columns()
        where schema_name = 'marts' and column_name = 'category'"""
    ).to_series()
    shown = [
        view
        for view in views
        if evidence.read(f"from {view} where category = 'stepping'", scope).height
    ]

    assert len(views) > 10
    assert shown == []


def test_the_drill_down_of_a_stretch_is_a_row_for_each_category(evidence):
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    rows = [
        {"event": "step", "step": k, "t": 100 + 2 * k, "dur_s": 2.0, "data_s": 0.5}
        for k in range(1, 401)
    ]
    evidence.events("1", [*rows, durable(400, 900)])
    evidence.build()

    found = evidence.read(
        """select category, is_amount, interval_s, gpu_ms from marts.category_intervals
        where category in ('data_stall', 'step_unsplit', 'teardown') order by category"""
    )

    assert found.rows() == [
        ("data_stall", True, 798.5, 200_000),
        ("step_unsplit", True, 800.0, 600_000),
        ("teardown", False, 100.0, 100_000),
    ]


@pytest.mark.parametrize(
    ("length_s", "segments"), [(59, 0), (60, 1), (61, 1)]
)  # fmt: skip
def test_a_save_of_a_minute_is_a_segment_of_its_own(evidence, length_s, segments):
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    saving = [phase("ckpt_save", 200, 200 + length_s), durable(20, 200 + length_s)]
    later = steps(21, 40, 200 + length_s)
    evidence.events("1", [*steps(1, 20, 0), *saving, *later, durable(40, 400 + length_s)])
    evidence.build()

    found = evidence.read(
        """select count(*) from intermediate.int_ledger_segments
        where category = 'checkpoint_save'"""
    )
    assert found.item() == segments
    assert evidence.gpu_s()["checkpoint_save"] == length_s
