"""A lake: batches, statuses, compaction, retention and what it says of itself."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.queries.lake.conftest import START, readings

from goodput_ingest.live import status
from goodput_ingest.live.status import Status
from goodput_lake.prune import drop_old_days
from goodput_lake.store import LakeStore
from goodput_lake.tables import archive, statuses
from goodput_lake.tables.arrange import lake_table
from goodput_lake.tables.lake import Lake
from goodput_lake.tables.selection import Selection
from goodput_lake.upkeep import Compaction, compact
from goodput_lake.upkeep import status as status_of
from goodput_queries.errors import QueryError, RowsRefusedError, StoreError, TooMuchDroppedError
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.evidence.retention import Retention

ORIGIN = "http://exporter"


def seconds(count):
    return START + timedelta(seconds=count)


def test_a_repeated_batch_adds_nothing_and_one_that_a_database_refuses_is_refused(lake):
    batch = replace(readings("d1"), rejects=[Reject(7, "no number", "x")])
    for rows in (batch.rows.drop("ts"), batch.rows.with_columns(power_w=pl.lit("much"))):
        with pytest.raises(RowsRefusedError, match="http://exporter: its rows do not fit"):
            lake.append(replace(batch, rows=rows))
    assert lake.tables() == []
    assert [lake.append(batch).rows_new for _ in range(2)] == [4, 0]
    assert lake.rows("gpu_samples").read_all().num_rows == 4
    assert lake.rows("rejects", columns=["line", "reason"]).read_all().to_pylist() == [
        {"line": 7, "reason": "no number"}
    ]
    (commit,) = lake.commits("gpu_samples")
    assert (commit.digest, commit.rows, commit.rejects) == ("d1 of west", 4, 1)
    assert (commit.window_start_at, commit.window_end_at) == (START, seconds(30))


def test_rows_are_selected_by_time_bucket_digest_and_version(lake):
    day = 86_400
    lake.append(readings("d1", (0, day), gpus=40))
    lake.append(readings("d2", (day + 30,), gpus=40))
    second = {"start_at": START + timedelta(days=1), "end_at": START + timedelta(days=1, seconds=1)}
    assert lake.rows("gpu_samples", **second).read_all().num_rows == 40
    assert lake.rows("gpu_samples", digests=["d2 of west"]).read_all().num_rows == 40
    assert lake.rows("gpu_samples", version=1).read_all().num_rows == 80
    found = [lake.rows("gpu_samples", buckets=[one]).read_all() for one in range(lake.buckets)]
    assert sum(part.num_rows for part in found) == 120
    gpus = [set(part["gpu_uuid"].to_pylist()) for part in found]
    assert sum(len(part) for part in gpus) == 40  # one bucket a GPU
    files = lake.file_list("gpu_samples")
    assert files is not None
    selection = Selection(lake_table("gpu_samples"), None, None, [3], ["d2 of west"])
    of_files = files.matching(selection)
    assert len(of_files) == 1
    assert "lake_day=2026-11-21/lake_bucket=3" in of_files[0]


def test_values_that_do_not_repeat_are_written_without_a_dictionary(lake):
    """Else they take space twice: in the dictionary up to its limit, and after it."""
    batch = readings("d1")
    lake.append(replace(batch, rows=batch.rows.with_columns(energy_j=pl.lit(5.0))))

    path = next(Path(lake.url).glob("**/gpu_samples/**/part-*.parquet"))
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    encodings = {column.path_in_schema: column.encodings for column in columns}
    assert "DELTA_BINARY_PACKED" in encodings["ts"]
    assert not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & {*encodings["ts"], *encodings["energy_j"]}


def test_of_a_price_list_the_last_one_holds(lake):
    """A list that was replaced and comes back is a load again; a repeat of the last is none."""

    def prices(digest):
        rows = pl.DataFrame({"source": "rates", "account": "a", "cost_per_month": digest})
        return Batch("budgets", rows, "rates", "budgets.csv", digest)

    for digest in ("1", "2", "2", "1"):
        lake.append(prices(digest))
    assert [one.digest[0] for one in lake.commits("budgets")] == ["1", "2", "1"]


def test_what_is_no_lake_or_another_one_and_what_a_lake_is_not_is_said(tmp_path, lake):
    with pytest.raises(StoreError, match="there is no lake"):
        Lake.open(str(tmp_path / "none"))
    Lake.create(str(tmp_path / "some"), buckets=4)
    with pytest.raises(StoreError, match="has 4 buckets, not 16"):
        Lake.create(str(tmp_path / "some"))
    with pytest.raises(QueryError, match="a lake answers no queries; build a database from it"):
        LakeStore(lake).read("from marts.goodput_by_team")
    with pytest.raises(StoreError, match="a lake has no ledger"):
        LakeStore(lake).build()


def test_sources_go_on_where_an_earlier_process_ended(lake):
    first = LakeStore(lake)
    first.load(readings("d1", (0, 90)))
    first.load(readings("late", (30,)))
    first.load(replace(readings("d2", (60,)), origin="http://other"))
    for store in (first, LakeStore(Lake.open(lake.url, cluster="west"))):
        reached = status.reached(store, "dcgm", seconds(600))
        assert reached == {ORIGIN: seconds(90), "http://other": seconds(60)}
        store.load(readings("late too", (45,)))
        assert status.reached(store, "dcgm", seconds(600))[ORIGIN] == seconds(90)
    first.load(readings("d3", (120,)))
    assert status.reached(first, "dcgm", seconds(600))[ORIGIN] == seconds(120)
    # another cluster may poll `localhost`, too, and send the very same rows
    status.write(first, [Status("dcgm", ORIGIN, seconds(60), 30.0).answered(seconds(60))])
    east = LakeStore(Lake.open(lake.url, cluster="east"))
    assert status.reached(east, "dcgm", seconds(600)) == {}
    assert east.load(readings("d1", (0, 90))).rows_new == 4
    rows = lake.rows("gpu_samples", columns=["lake_cluster"]).read_all()["lake_cluster"].to_pylist()
    assert rows.count("east") == 4


def test_a_status_is_replaced_and_survives_its_process(lake):
    store = LakeStore(lake)
    asked = Status("slurm", "commands", seconds(0), 60.0)
    status.write(store, [asked.answered(seconds(0))])
    failed = asked.answered(seconds(0)).failed(seconds(60), "sacct: 'no' such cluster")
    status.write(store, [failed])
    again = LakeStore(Lake.open(lake.url, cluster="west"))
    assert status.read(again, asked) == replace(failed, asked_at=seconds(0))
    assert status.reached(again, "slurm", seconds(600)) == {"commands": seconds(0)}
    (row,) = statuses.read(lake).to_dicts()
    assert (row["cluster"], row["failures"], row["interval_s"]) == ("west", 1, 60.0)
    lake.objects.write("status/x.json", "[]")
    with pytest.raises(StoreError, match=r"status/x\.json: this is not a status of a source"):
        statuses.read(lake)


DAY_S = 86_400


def rows_of(lake, table="gpu_samples"):
    found = pl.DataFrame(lake.rows(table).read_all())
    return found.sort(pl.all())


def data_files(lake):
    return sorted(Path(lake.url, "raw").rglob("part-*.parquet"))


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
    compact(lake, today=date(2026, 11, 21))
    before = data_files(lake), lake.version("gpu_samples")
    compact(lake, today=date(2026, 11, 21))
    assert (data_files(lake), lake.version("gpu_samples")) == before, "the second time"


def test_loads_outlast_their_log(lake, monkeypatch):
    """A writer that slept goes on, too."""
    asleep = Lake.open(lake.url, cluster="west")
    asleep.append(readings("d0", (0,)))
    for number in range(1, 4):
        lake.append(readings(f"d{number}", (30 * number,)))
    loads = lake.commits("gpu_samples")
    compact(lake, Compaction(kept_h=0), today=date(2026, 11, 21))
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
    assert asleep.append(readings("d2", (60,))).is_repeat
    assert asleep.append(readings("d5", (300,))).rows_new == 2


def days_of_readings(lake, days):
    """Load readings, and a hold for which no retention is set; return the time of the last day."""
    for day in range(days):
        lake.append(readings(f"d{day}", (DAY_S * day,)))
    rows = pl.DataFrame({"source": "inventory", "cluster": "west", "gpu_uuid": "G", "node": "a"})
    lake.append(Batch("gpus", rows, "inventory", "test", "gpus"))
    return START + timedelta(days=days - 1)


def test_days_beyond_retention_go_and_the_rest_stays(lake):
    """A clock that runs ahead drops nothing; more than a tenth goes only when confirmed."""
    now = days_of_readings(lake, 12)
    ahead = now + timedelta(days=400)
    assert drop_old_days(lake, Retention(samples_days=12), now=ahead).is_empty()
    dropped = drop_old_days(lake, Retention(samples_days=11), now=now)
    assert dropped.rows() == [("gpu_samples", 2, date(2026, 11, 21))]
    assert rows_of(lake)["ts"].min() == START + timedelta(days=1)
    assert rows_of(lake, "gpus").height == 1
    assert drop_old_days(lake, Retention(samples_days=11), now=now).is_empty()
    assert drop_old_days(lake, Retention(), now=now).is_empty()
    late = replace(readings("late", (0,)), origin="http://late")
    assert lake.append(late).rows_new == 2  # and goes with the next retention
    assert drop_old_days(lake, Retention(samples_days=11), now=now)["rows"].to_list() == [2]
    with pytest.raises(TooMuchDroppedError, match=r"18 of 22 rows of gpu_samples \(82%\)"):
        drop_old_days(lake, Retention(samples_days=2), now=now)
    assert rows_of(lake).height == 22
    drop_old_days(lake, Retention(samples_days=2), now=now, is_confirmed=True)
    assert rows_of(lake).height == 4


def test_the_status_has_a_row_for_each_table_and_cluster(lake):
    assert status_of(lake).is_empty()
    days_of_readings(lake, 2)
    Lake.open(lake.url, cluster="east").append(readings("d0", gpus=1))
    first, last = date(2026, 11, 20), date(2026, 11, 21)
    assert status_of(lake).drop("bytes").rows() == [
        ("gpu_samples", "east", first, first, 2, 1, 1),
        ("gpu_samples", "west", first, last, 4, 4, 4), ("gpus", "west", None, None, 1, 1, 1),
    ]  # fmt: skip
