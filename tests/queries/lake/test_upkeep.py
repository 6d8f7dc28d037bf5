"""Compaction, retention and what a lake says of itself."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.queries.lake.conftest import START, readings

from goodput_queries.errors import TooMuchDroppedError
from goodput_queries.evidence.batch import Batch
from goodput_queries.evidence.retention import Retention
from goodput_queries.lake import archive
from goodput_queries.lake.lake import Lake
from goodput_queries.lake.prune import drop_old_days
from goodput_queries.lake.upkeep import Compaction, compact, status

DAY_S = 86_400


def rows_of(lake, table="gpu_samples"):
    found = pl.DataFrame(lake.rows(table).read_all())
    return found.sort(pl.all())


def data_files(lake):
    return sorted(Path(lake.url, "raw").rglob("part-*.parquet"))


def is_removed_at_once(lake):
    return compact(lake, Compaction(kept_h=0), today=date(2026, 11, 21))


def test_compaction_merges_files_and_changes_no_row(lake):
    """Collectors go on meanwhile; files of killed writers go too."""
    for number in range(6):
        lake.append(readings(f"d{number}", (30 * number, DAY_S + 30 * number)))
    rows, loads = rows_of(lake), lake.commits("gpu_samples")
    orphan = data_files(lake)[0].with_name("part-00000-of-a-killed-writer.parquet")
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))

    with ThreadPoolExecutor(1) as pool:
        late = pool.map(lake.append, [readings(f"late{n}", (15 + 30 * n,)) for n in range(4)])
        compacted = compact(lake, today=date(2026, 11, 21))
        assert sum(loaded.rows_new for loaded in late) == 16 / 2

    assert compacted["files"].to_list()[0] < compacted["files_before"].to_list()[0]
    assert not orphan.exists()
    found = rows_of(lake)
    assert found.filter(~pl.col("load_digest").str.starts_with("late")).equals(rows)
    assert found.height == rows.height + 8
    assert lake.commits("gpu_samples")[: len(loads)] == loads


def test_loads_outlast_their_log(lake, monkeypatch):
    for number in range(4):
        lake.append(readings(f"d{number}", (30 * number,)))
    loads = lake.commits("gpu_samples")
    is_removed_at_once(lake)
    lake.append(readings("d4", (120,)))
    for file in sorted(Path(lake.url_of("gpu_samples"), "_delta_log").glob("0*.json"))[:4]:
        file.unlink()

    again = Lake.open(lake.url, cluster="west")
    assert again.append(readings("d1", (30,))).is_repeat
    found = again.commits("gpu_samples")
    assert (found[:4], [one.digest for one in found[4:]]) == (loads, ["d4 of west"])
    assert again.commits("gpu_samples", after=loads[1].version) == found[2:]
    assert again.commits("gpu_samples", after=found[-1].version) == []
    monkeypatch.setattr(archive, "READ_FROM_LOG_MAX", 0)
    assert again.commits("gpu_samples", after=loads[1].version) == found[2:]
    assert archive.archive_loads(again) == 1
    assert again.commits("gpu_samples") == found


def test_a_writer_that_slept_goes_on_after_the_log_was_cleaned_up(lake):
    lake.append(readings("d0"))
    other = Lake.open(lake.url, cluster="west")
    for number in range(1, 4):
        other.append(readings(f"d{number}", (30 * number,)))
    is_removed_at_once(other)
    for file in sorted(Path(lake.url_of("gpu_samples"), "_delta_log").glob("0*.json"))[:-1]:
        file.unlink()
    assert lake.append(readings("d4", (300,))).rows_new == 2
    assert lake.append(readings("d2", (60,))).is_repeat


def test_compacting_twice_changes_nothing(lake):
    for number in range(3):
        lake.append(readings(f"d{number}", (30 * number,)))
    compact(lake, today=date(2026, 11, 21))
    files, version = data_files(lake), lake.version("gpu_samples")
    again = compact(lake, today=date(2026, 11, 21))
    assert (data_files(lake), lake.version("gpu_samples")) == (files, version)
    assert again["files"].to_list() == again["files_before"].to_list()


def days_of_readings(lake, days):
    """Load readings, and a hold for which no retention is set; return the time of the last day."""
    for day in range(days):
        lake.append(readings(f"d{day}", (DAY_S * day,)))
    rows = pl.DataFrame({"source": "inventory", "cluster": "west", "gpu_uuid": "G", "node": "a"})
    lake.append(Batch("gpus", rows, "inventory", "test", "gpus"))
    return START + timedelta(days=days - 1)


def test_days_beyond_retention_go_and_the_rest_stays(lake):
    now = days_of_readings(lake, 12)
    dropped = drop_old_days(lake, Retention(samples_days=11), now=now)
    assert dropped.rows() == [("gpu_samples", 2, date(2026, 11, 21))]
    assert rows_of(lake)["ts"].min() == START + timedelta(days=1)
    assert rows_of(lake, "gpus").height == 1
    assert drop_old_days(lake, Retention(samples_days=11), now=now).is_empty()
    assert drop_old_days(lake, Retention(), now=now).is_empty()
    late = replace(readings("late", (0,)), origin="http://late")
    assert lake.append(late).rows_new == 2  # and goes with the next retention
    assert drop_old_days(lake, Retention(samples_days=11), now=now)["rows"].to_list() == [2]


def test_more_than_a_tenth_goes_only_when_confirmed(lake):
    now = days_of_readings(lake, 4)
    with pytest.raises(TooMuchDroppedError, match=r"4 of 8 rows of gpu_samples \(50%\)"):
        drop_old_days(lake, Retention(samples_days=2), now=now)
    assert rows_of(lake).height == 8
    drop_old_days(lake, Retention(samples_days=2), now=now, is_confirmed=True)
    assert rows_of(lake).height == 4


def test_a_clock_that_runs_ahead_drops_nothing(lake):
    now = days_of_readings(lake, 3)
    ahead = now + timedelta(days=400)
    assert drop_old_days(lake, Retention(samples_days=3), now=ahead).is_empty()


def test_the_status_has_a_row_for_each_table_and_cluster(lake):
    assert status(lake).is_empty()
    days_of_readings(lake, 2)
    Lake.open(lake.url, cluster="east").append(readings("d0", gpus=1))
    found = status(lake).drop("bytes")
    assert found.rows() == [
        ("gpu_samples", "east", date(2026, 11, 20), date(2026, 11, 20), 2, 1, 1),
        ("gpu_samples", "west", date(2026, 11, 20), date(2026, 11, 21), 4, 4, 4),
        ("gpus", "west", None, None, 1, 1, 1),
    ]
