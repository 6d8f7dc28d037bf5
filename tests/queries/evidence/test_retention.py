"""Old evidence goes by age; the GPU-hours computed from it stay."""

from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.queries.conftest import START_MS, built_after, built_file, copy_of, each
from tests.tables import refuses

from goodput_queries.errors import StoreError, TooMuchDroppedError, UnbuiltError
from goodput_queries.evidence import retention
from goodput_queries.evidence.retention import Retention
from goodput_queries.ledger import capacity_ms, ledger
from goodput_queries.scope import Scope

DAY_S = 86_400
LAST_DAY_MS = START_MS + (40 * 3600) * 1000  # its first midnight
WEEK = Retention(samples_days=1, collectives_days=1)
NOW = datetime(2027, 1, 18)  # noqa: DTZ001 -- naive UTC; the evidence ends a day before


def drop_old(store, ages, **options):
    """Drop as a person does who was asked, after the evidence has come."""
    return retention.drop_old(store, ages, **{"is_confirmed": True, "now": NOW, **options})


@built_file
def built_two_days(evidence):
    """One GPU, read every ten minutes for two days; a job on each, with a gap of 90 s."""
    evidence.node("a", 1, watched=2 * DAY_S)
    for day in (0, 1):
        evidence.job(str(day), day * DAY_S + 600, day * DAY_S + 36_090, ["a"], 1)
    moments = evidence.every(0, 2 * DAY_S, 600)
    evidence.samples("c/a#0", moments, lambda second: second % 7200 > 3000)


two_days = copy_of("built_two_days")
# without the readings of its first two calendar days, and its ledger before that
dropped_week = built_after("built_two_days", lambda e: (hourly(e), drop_old(e.store, WEEK))[0])
dropped = copy_of("dropped_week")


@pytest.fixture
def before(dropped_week):
    return dropped_week[1]


def hourly(evidence):
    return evidence.store.read("from marts.ledger_hourly order by all").rows()


@pytest.mark.usefixtures("all_packages")
def test_readings_of_hosts_links_and_engines_go_and_those_of_power_meters_stay(two_days):
    seconds = two_days.every(0, 2 * DAY_S, 3600)
    port = {"node": "a", "kind": "infiniband", "device": "mlx5_0", "port": "1"}
    two_days.series("link_samples", seconds, {"symbol_errors": lambda s: int(s / 3600)}, **port)
    two_days.host("a", seconds, cpu_total_s=1.0)
    two_days.host("a", seconds, "m", power_w=9.0)
    engine = {"endpoint": "e", "engine": "", "model": "m", "role": "", "product": "tgi"}
    running = {"metric": "requests_running", "value": 1.0}
    two_days.series("serving_samples", seconds, running, **engine)
    requests = [{"request_id": f"{second}", "arrival_at": second} for second in seconds]
    two_days.add("serving_requests", *requests, endpoint="e", model="m")
    two_days.store.build()
    before = two_days.store.read("select symbol_errors from marts.link_errors").item()

    dropped = dict(drop_old(two_days.store, WEEK).select("table_name", "rows").rows())
    two_days.store.build()

    assert dropped["raw.link_samples"] == dropped["raw.node_samples"] == 40
    assert dropped["raw.serving_samples"] == dropped["raw.serving_requests"] == 40
    assert two_days.store.read("select count(power_w) from raw.node_samples").item() == 49
    assert two_days.store.read("select symbol_errors from marts.link_errors").item() == before == 48


def test_a_full_build_and_late_evidence_keep_what_can_no_longer_be_built(dropped, before):
    oldest = dropped.store.read("select epoch_ms(min(ts)) from raw.gpu_samples").item()
    assert oldest >= LAST_DAY_MS

    dropped.store.build(is_full=True)

    assert hourly(dropped) == before
    assert dropped.violations() == 0
    assert drop_old(dropped.store, WEEK).is_empty(), "nothing more"
    dropped.job("late", 40_000, 47_000, ["a"], 1)
    dropped.build()
    assert hourly(dropped) == before


@pytest.mark.machine
def test_a_file_of_another_version_keeps_its_frozen_hours_in_every_roll_up(two_days):
    def rolled_up():
        sql = "select hour_ms, category, sum(gpu_ms)::bigint from marts.{} group by all"
        views = ("ledger_hourly_by_node", "statement_hourly")
        return [sorted(two_days.store.read(sql.format(view)).rows()) for view in views]

    before = rolled_up()
    drop_old(two_days.store, WEEK)
    with two_days.store.writing() as cursor:
        cursor.execute("update raw.catalog set digest = 'of another version'")

    two_days.store._prepare()  # what opening the file does: everything derived is rebuilt
    two_days.store.build()

    assert rolled_up() == before


def test_windows_without_segments_are_answered_in_whole_hours_and_others_exactly(two_days):
    drop_old(two_days.store, Retention(samples_days=1, segments_days=1))
    without = Scope(from_ms=START_MS + 1_800_000, to_ms=START_MS + 5_400_000)
    kept = Scope(from_ms=LAST_DAY_MS + 1_800_001, to_ms=LAST_DAY_MS + 5_400_000)

    assert ledger(two_days.store, scope=without)["gpu_ms"].sum() == 2 * 3_600_000
    assert ledger(two_days.store, scope=kept)["gpu_ms"].sum() == 3_599_999
    assert capacity_ms(two_days.store, kept) == 3_599_999
    assert two_days.violations() == 0, "job runs of dropped segments are left out"


test_ages_that_make_no_sense_are_refused = refuses(
    StoreError, lambda ages: Retention(**ages),
    ({"samples_days": 0}, "keep one day at least"), ({"segments_days": 3}, "set both"),
    ({"samples_days": 9, "segments_days": 3}, "at least as long"),
)  # fmt: skip


def test_more_than_a_tenth_goes_only_by_a_persons_word(two_days):
    """What no build has seen is not dropped."""
    with pytest.raises(TooMuchDroppedError, match=r"\(83%\).*`goodput prune --yes`"):
        drop_old(two_days.store, WEEK, is_confirmed=False)
    two_days.job("late", 40_000, 47_000, ["a"], 1)
    with pytest.raises(UnbuiltError, match="run `goodput build` first"):
        drop_old(two_days.store, WEEK)

    assert two_days.store.read("from state.kept_from").is_empty()
    assert two_days.store.read("select count(*) from raw.gpu_samples").item() == 289


def test_the_day_that_has_come_of_age_since_the_last_time_goes_by_itself(two_days):
    drop_old(two_days.store, Retention(samples_days=2), now=NOW)
    two_days.samples("a#0", two_days.every(2 * DAY_S, 3 * DAY_S, 600), lambda _: True)
    two_days.store.build()

    later = NOW + timedelta(days=1)
    dropped = drop_old(two_days.store, Retention(samples_days=2), is_confirmed=False, now=later)

    assert dict(dropped.select("table_name", "rows").rows())["raw.gpu_samples"] == 144


AHEAD = 20 * DAY_S


# what it shows: what lies ahead of all other evidence, the clock, from which day on readings stay
@each({
    # the first day of the evidence
    "age counts from the clock where evidence lies ahead of it": (
        lambda _: None, datetime(2027, 1, 15, 20), None),  # noqa: DTZ001 -- naive UTC
    "a lone reading makes nothing old": (
        lambda c: c.samples("a#0", [AHEAD], lambda _: True), NOW + timedelta(days=60), 0),
    "two sources confirm what an hour of readings does not": (
        lambda c: [c.samples("a#0", [AHEAD], lambda _: True),
                   c.state("*", "up", AHEAD, AHEAD + 60)], NOW + timedelta(days=60), 18),
})  # fmt: skip
def test_what_is_old_where_evidence_lies_ahead(two_days, ahead, now, days):
    ahead(two_days)
    two_days.store.build()

    dropped = drop_old(two_days.store, WEEK, now=now)
    kept_from = dict(dropped.filter(pl.col("rows") > 0).select("table_name", "kept_from_ms").rows())
    expected = None if days is None else LAST_DAY_MS + days * DAY_S * 1000
    assert kept_from.get("raw.gpu_samples") == expected


def read_again(evidence, first, last):
    moments = evidence.every(first, last, 600)
    evidence.samples("c/a#0", moments, lambda second: second % 7200 > 3000)


def test_frozen_hours_stay_while_some_of_their_readings_are_missing(dropped, before):
    read_again(dropped, 0, 10 * 3_600)
    dropped.build()

    assert hourly(dropped) == before
    kept = dropped.store.read("select kept_from_ms from state.kept_from").to_series().to_list()
    assert LAST_DAY_MS in kept
    finding = "select n from marts.data_quality where kind = 'readings of frozen hours'"
    assert dropped.store.read(finding).item() == 61


def test_frozen_hours_whose_readings_are_all_back_reopen_and_take_late_evidence(dropped):
    dropped.job("late", 40_000, 47_000, ["a"], 1)
    read_again(dropped, 0, LAST_DAY_MS // 1000 - START_MS // 1000)

    dropped.build()

    held = "select count(*) from marts.ledger_hourly where job_run_key like '%late%'"
    assert dropped.store.read(held).item() > 0
    assert dropped.store.read("from state.ledger_archive").is_empty()
    assert dropped.violations() == 0
