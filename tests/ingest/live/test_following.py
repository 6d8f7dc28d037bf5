# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""A log that is followed as it grows gives the rows of the whole file, however it is cut."""

import random
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.followed_logs import FOLLOWED_LOGS

from goodput_ingest.live.config import FOLLOWED
from goodput_ingest.live.tail import Tail
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

NOW = datetime(2026, 11, 20, 13)
ZONE = "Europe/Berlin"
TABLES = (
    *("job_events", "job_runs", "gpus", "collectives", "rank_map", "gpu_events"),
    "serving_requests",
)
Rows = list[tuple[Any, ...]]


@pytest.fixture(params=FOLLOWED_LOGS)
def log(request):
    return FOLLOWED_LOGS[request.param]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def tail(log, folder):
    return Tail(str(folder), log.reads, cluster="lab", timezone=ZONE, node=log.node)


def reached(store):
    sql = "select origin, max(window_end_at) from state.ingested where window_end_at is not null"
    return dict(store.read(f"{sql} group by origin").rows())


def load(store, source):
    for batch in source.poll(reached(store), NOW):
        store.load(batch)


def known(store):
    """Return all evidence and rejects, without their load numbers."""
    found = []
    for table in TABLES:
        rows = store.read(f"select * exclude (load_sequence) from raw.{table}")
        # polars divides a column of one row otherwise than one of several: the last bit differs
        found += [
            (table, *(float(f"{v:.12g}") if isinstance(v, float) else v for v in row))
            for row in rows.rows()
        ]
    rejects = store.read("select line, reason, content from raw.rejects").rows()
    return sorted([*found, *(("rejects", *row) for row in rejects)], key=repr)


def of_whole(store, log, folder):
    """Return what a log gives that is read in whole; nothing of it stays."""
    path = folder / log.file
    path.write_text(log.text)
    ingest(store, log.reads, [path], ReadOptions("lab", ZoneInfo(ZONE), node=log.node))
    found = known(store)
    path.unlink()
    with store.writing() as cursor:
        for table in (*(f"raw.{table}" for table in (*TABLES, "rejects")), "state.ingested"):
            cursor.execute(f"delete from {table}")
    return found


def growing(path, pieces):
    for piece in pieces:
        with path.open("a") as file:
            file.write(piece)
        yield


def lines(text):
    return [line + "\n" for line in text.removesuffix("\n").split("\n")]


def test_each_followed_format_has_a_log_here():
    assert {log.reads for log in FOLLOWED_LOGS.values()} == set(FOLLOWED)


def test_a_log_polled_after_each_line_has_the_rows_of_the_whole(store, folder, log):
    whole = of_whole(store, log, folder)
    source = tail(log, folder)

    for _ in growing(folder / log.file, lines(log.text)):
        load(store, source)

    assert whole
    assert known(store) == whole


def test_a_log_cut_anywhere_has_the_rows_of_the_whole_though_its_collector_restarts(
    store, folder, log
):
    whole = of_whole(store, log, folder)
    chance = random.Random(log.text)  # noqa: S311 -- seeded, so that a failure comes again
    cuts = sorted(chance.sample(range(1, len(log.text)), 12))

    pieces = [log.text[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    for number, _ in enumerate(growing(folder / log.file, pieces)):
        if number % 4 == 0:
            source = tail(log, folder)
        load(store, source)

    assert known(store) == whole
