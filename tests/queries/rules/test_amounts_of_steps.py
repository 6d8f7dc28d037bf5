"""Stretches of steps are amounts in the ledger: those of their intervals, to the millisecond.

The definition here knows no stretch, cell or amount: each moment of an allocated GPU is in the
piece of its attempt's timeline, and in a step in the split that has it.
"""

import random
from collections import Counter

import pytest
from tests.queries.conftest import START_MS, Evidence, built_together, durable, phase, steps

from goodput_queries.scope import Scope

HOUR_MS = 3_600_000
END_S = 4500  # an hour ends within attempts
WINDOWS = 8
SEEDS = range(3)
AMOUNTS = """select gpu_uuid, gpu_instance, attempt_key, category, phase, sum(gpu_ms)::bigint as ms
    from marts.ledger_owned where not is_by_node and attempt_key is not null
    group by all having ms <> 0"""

INTERVALS = """with pieces as (
        select
            gpu_uuid, gpu_instance, attempt_key, category, phase,
            greatest($1, held.start_ms, piece.start_ms) as start_ms,
            least($2, held.end_ms, piece.end_ms) as end_ms
        from intermediate.int_holds as held
        inner join intermediate.int_run_timeline as piece using (job_run_key)
        where starts_with(job_run_key, $3)
    ),
    splits as (
        select
            pieces.* replace (
                greatest(pieces.start_ms, split.start_ms) as start_ms,
                least(pieces.end_ms, split.end_ms) as end_ms
            ),
            split.category as of_split, split.phase as of_phase
        from pieces
        inner join intermediate.int_step_splits as split using (attempt_key)
        where pieces.category = 'step_unsplit' and coalesce(split.gpu_uuid = pieces.gpu_uuid, true)
    ),
    parts as (
        select *, 1 as sign from pieces
        union all
        select * exclude (of_split, of_phase), -1 from splits
        union all
        select * exclude (of_split, of_phase) replace (of_split as category, of_phase as phase), 1
        from splits
    )
    select
        gpu_uuid, gpu_instance, attempt_key, category, phase,
        sum(sign * (end_ms - start_ms))::bigint as ms
    from parts where end_ms > start_ms group by all having ms <> 0"""
SEGMENTS = """select attempt_key, count(distinct coalesce(stretch_ms, start_ms))
    from intermediate.int_run_timeline group by all"""


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
        end = min(END_S - 1, begin + of.choice([1200, 2400, 3600]))
        cluster.job(job, begin, end, ["a"], gpus, state=of.choice(["COMPLETED", "FAILED"]))
        attempts, ranks, step = of.choice([1, 2, 3]), of.choice([1, gpus]), 0
        for attempt in range(attempts):
            at = begin + (end - begin) * attempt / attempts + of.uniform(5, 60)
            until = begin + (end - begin) * (attempt + 1) / attempts - of.uniform(5, 60)
            rows = attempt_events(of, at, until, step, ranks)
            events.append((job, attempt, rows))
            step = max((row["step"] for row in rows if row["event"] == "ckpt.durable"), default=0)
    return events


def differences(cluster, first, last):
    """Return where the ledger of a window differs; of a share, by more than its rounding.

    A share is rounded once in each segment of an hour.
    """
    given = cluster.read(AMOUNTS, Scope(first, last, cluster=cluster.name)).rows()
    wanted = cluster.store.read(INTERVALS, [first, last, f"{cluster.name}/"]).rows()
    found, expected = Counter(), Counter()
    for of, rows in ((found, given), (expected, wanted)):
        for *key, ms in rows:
            of[tuple(key)] = ms
    hours = (last - 1) // HOUR_MS - first // HOUR_MS
    segments = dict(cluster.read(SEGMENTS).rows())
    return [
        (key, found[key], expected[key])
        for key in found.keys() | expected.keys()
        if abs(found[key] - expected[key] / (3 if key[1] else 1))
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


@built_together
def test_a_stretch_of_steps_is_one_segment_an_hour_whatever_their_number(cluster):
    cluster.node("a", 2)
    for job, (count, length) in enumerate([(10, 60.0), (1000, 0.6)]):
        cluster.job(str(job), 0, 620, ["a"], 1)
        ran = steps(1, count, 10, length, comm_s=0.1)
        cluster.events(str(job), [*ran, durable(count, 610)])
    yield
    found = cluster.read(
        f"""select attempt_key, count(*) as segments from intermediate.int_ledger_segments
        where category = 'stepping' and cluster = '{cluster.name}' group by all"""
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


@built_together
def test_the_drill_down_of_a_stretch_is_a_row_for_each_category(cluster):
    cluster.job_on_a_node("1", 0, 1000, 1)
    cluster.events("1", [*steps(1, 400, 100, 2.0, data_s=0.5), durable(400, 900)])
    yield
    found = cluster.read(
        """select category, is_amount, interval_s, gpu_ms from marts.category_intervals
        where category in ('data_stall', 'step_unsplit', 'teardown') order by category"""
    )
    assert found.rows() == [
        ("data_stall", True, 798.5, 200_000),
        ("step_unsplit", True, 800.0, 600_000),
        ("teardown", False, 100.0, 100_000),
    ]


@pytest.mark.parametrize(("length_s", "segments"), [(59, 0), (60, 1), (61, 1)])
@built_together
def test_a_save_of_a_minute_is_a_segment_of_its_own(cluster, length_s, segments):
    cluster.job_on_a_node("1", 0, 1000, 1)
    saving = [phase("ckpt_save", 200, 200 + length_s), durable(20, 200 + length_s)]
    later = steps(21, 40, 200 + length_s)
    cluster.events("1", [*steps(1, 20, 0), *saving, *later, durable(40, 400 + length_s)])
    yield
    found = cluster.read(
        f"""select count(*) from intermediate.int_ledger_segments
        where category = 'checkpoint_save' and cluster = '{cluster.name}'"""
    )
    assert found.item() == segments
    assert cluster.gpu_s()["checkpoint_save"] == length_s
