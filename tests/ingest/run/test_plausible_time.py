"""Rows whose time cannot be one at which something was observed are rejected, the others kept."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest
from tests.ingest.fake_live import NOON, SetClock, at, batch, collector
from tests.ingest.golden_cases import FIRST, expected_of, input_of, options_of, rows_of
from tests.tables import each

from goodput_ingest.live.scheduler import Collection
from goodput_ingest.live.store_lease import Held
from goodput_ingest.run.ingest import ingest
from goodput_ingest.run.plausible_time import PlausibleTime
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import sources
from goodput_queries.catalog import models
from goodput_queries.evidence.batch import Batch

STAMPS = {"1970": datetime(1970, 1, 1, 0, 5), "2036": datetime(2036, 2, 7, 6, 28)}  # noqa: DTZ001
# moments that are no observations: what holds from and to when, and what the store writes itself
NOT_ASKED = {
    *("valid_from_at", "valid_to_at", "from_at", "to_at", "hour_at", "evidence_at"),
    *("window_start_at", "window_end_at", "loaded_at", "closed_at"),
    *("asked_at", "answered_at", "retired_at", "failing_since_at"),
}


@pytest.mark.parametrize("name", FIRST)
def test_every_source_loses_its_rows_of_1970_and_2036_alone(name, store, monkeypatch):
    case, kind, added = FIRST[name], sources()[name], 0

    class WithBadRows(kind):
        def extract(self):
            nonlocal added
            for one in super().extract():
                of = [c for c in models.of_layer("raw")[one.table].observed if c in one.rows]
                of = [c for c in of if one.rows.schema[c] != pl.Null] if one.rows.height else []
                bad = [
                    one.rows.head(1).with_columns(pl.lit(stamp).cast(one.rows.schema[c]).alias(c))
                    for c in of
                    for stamp in STAMPS.values()
                ]
                added += len(bad)
                yield replace(one, rows=pl.concat([one.rows, *bad]))

    monkeypatch.setitem(sources(), name, WithBadRows)
    summary = ingest(store, name, [input_of(case)], options_of(case))

    expected = expected_of(case, {})
    expected.pop("expected_rejects.csv", None)
    assert rows_of(store, {*summary.rows_by_table} - {"rejects"}) == expected
    assert summary.refused == []
    assert summary.rejects >= added
    reasons = store.read("select reason from raw.rejects").to_series().to_list()
    reported = [one for one in reasons if "plausible time" in one or "check the clocks" in one]
    assert bool(reported) == bool(added)


def test_every_moment_of_a_raw_table_is_asked_or_known_to_be_no_observation():
    for model in models.of_layer("raw").values():
        times = {
            line.split()[0]
            for line in model.sql.splitlines()
            if line.startswith("    ") and line.split()[1] == "timestamp"
        }
        assert times - {*model.observed, *model.planned} <= NOT_ASKED, model.name


READINGS = {"source": "s", "gpu_uuid": "GPU-1", "gpu_instance": ""}


def readings(*moments, digest="d"):
    rows = pl.DataFrame({**READINGS, "ts": list(moments)})
    return Batch("gpu_samples", rows, "s", "file", digest)


def days(*numbers):
    return [NOON + timedelta(days=number) for number in numbers]


def recorded():
    return PlausibleTime(now=lambda: NOON, is_recorded=True)


def left(found):
    """Return the days after NOON of the rows that are left."""
    return [(moment - NOON) / timedelta(days=1) for moment in found.rows["ts"]]


LIVE = PlausibleTime(now=lambda: NOON)
SITE = PlausibleTime(NOON - timedelta(days=30), lambda: NOON)
YEARS = [*range(-3_000, 0, 30)]


# of what source, days of its readings, those that are left, why others are not
@each({
    "a reading of the next hour is kept, since clocks differ": (
        recorded(), [0, 1 / 24, 1.01 / 24], [0, 1 / 24], "clock of the machine that read it"),
    "what lies apart from a file's bulk is rejected": (
        recorded(), [-405, -3, -2, -1], [-3, -2, -1], "400 days from all other times"),
    "a file of many years without holes is kept": (recorded(), YEARS, YEARS, ""),
    "an old file is no stray": (recorded(), [-7_000, -6_999], [-7_000, -6_999], ""),
    "a live source may catch up from long ago": (LIVE, [-900, -1], [-900, -1], ""),
    "a site says what is too early": (SITE, [-31, -1], [-1], "plausible time"),
})  # fmt: skip
def test_readings_of_a_plausible_time_are_kept(source, given, kept, why):
    found = source.checked(readings(*days(*given)))
    assert left(found) == pytest.approx(kept)
    assert len(found.rejects) == len(given) - len(kept)
    assert all(why in reject.reason for reject in found.rejects)


def test_the_bulk_is_that_of_the_whole_file_so_far():
    plausible = recorded()
    plausible.checked(readings(*days(*[-1 + second / 86_400 for second in range(100)])))
    assert left(plausible.checked(readings(*days(-900)))) == []
    assert left(plausible.checked(readings(*days(-0.5)))) == [-0.5]


def test_plans_may_lie_ahead():
    plans = {
        "reservations": {"name": "r", "start_at": days(30), "end_at": days(27_000)},
        "gpus": {"gpu_uuid": "a#0", "valid_from_at": days(90)},
        "rates": {"source": "s", "valid_from_at": days(-20_000)},
    }
    for table, rows in plans.items():
        found = recorded().checked(Batch(table, pl.DataFrame(rows), "s", "file", "d"))
        assert found.rows.height == 1, table


def test_a_row_of_a_job_is_rejected_whichever_of_its_moments_is_bad():
    moments = {"submit_at": days(-1, -1, -1), "start_at": days(-1, 400, -1)}
    rows = pl.DataFrame({"job_id_raw": ["1", "2", "3"], **moments, "end_at": [None, None, None]})

    found = recorded().checked(Batch("job_runs", rows, "s", "file", "d"))

    assert found.rows["job_id_raw"].to_list() == ["1", "3"]
    assert [one.reason.split()[0] for one in found.rejects] == ["start_at"]


def test_moments_that_no_calendar_has_are_rejected_too():
    stamps = pl.Series("ts", [0, 2**62, -(2**62)]).cast(pl.Datetime("us"))
    rows = pl.DataFrame({"gpu_uuid": ["GPU\u2028", "GPU\n", "GPU"], "ts": stamps})

    found = recorded().checked(Batch("gpu_samples", rows, "s", "file", "d"))

    assert (found.rows.height, len(found.rejects)) == (0, 3)


def test_a_file_is_no_repeat_once_the_clock_is_right(store):
    slow = PlausibleTime(now=lambda: NOON - timedelta(days=2), is_recorded=True)
    given = readings(*days(-3, -1))

    first, again = (store.load(slow.checked(given)) for _ in range(2))
    right = store.load(recorded().checked(given))

    assert (first.rows_new, first.rejects) == (1, 1)
    assert again.is_repeat
    assert (right.is_repeat, right.rows_new, right.rejects) == (False, 1, 0)


def test_the_clock_of_a_live_source_decides_what_lies_ahead(store):
    given = (one for one in [batch("a", [0, 3_000, 9_000])])
    source = SimpleNamespace(name="fake", origin="a", interval_s=1.0, poll=lambda *_: given)

    outcome = Collection([collector(source)], Held(store), SetClock(60).clock()).ask_once()[0]

    assert (outcome.error, outcome.rows, outcome.rejects) == (None, 2, 1)
    assert store.read("select max(ts) from raw.gpu_samples").item() == at(3_000)


@pytest.mark.parametrize("stamp_s", [300, 1_787_230_800 - 300 * 86_400, 2_086_000_000])
def test_a_bad_stamp_in_an_answer_about_kubernetes_makes_no_more_rows(stamp_s, store, tmp_path):
    """It has 100 nodes, of which 20 are cordoned, and one sample of another time."""
    now_s = 1_787_230_800.0
    capacity = {"resource": "nvidia_com_gpu", "unit": "integer"}
    samples = [("spec_unschedulable", 1, {}, stamp_s, "1")]
    for number in range(100):
        samples.append(("status_capacity", number, capacity, now_s, "8"))
        samples.append(("spec_unschedulable", number, {}, now_s, f"{number % 5}"))
    result = [
        {"metric": {"__name__": f"kube_node_{name}", "node": f"n{node}", **more}, "value": of}
        for name, node, more, *of in samples
    ]
    answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
    file = tmp_path / "kubernetes.json"
    file.write_text(json.dumps(answer))

    summary = ingest(store, "kubernetes", [file], ReadOptions(cluster="k"))

    assert summary.rows_by_table["nodes"] == 100
    assert summary.rows_by_table["gpus"] == 800
    assert summary.rows_by_table["node_states"] < 200
    observed = store.read("select max(observed_at) from raw.nodes").item()
    assert observed == datetime(2026, 8, 20, 13)  # noqa: DTZ001
