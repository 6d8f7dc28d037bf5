# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""A log that is followed as it grows gives the rows of the whole file, however it is cut."""

import itertools
import random
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.fake_live import add, follow, reached
from tests.ingest.followed_logs import FOLLOWED_LOGS

from goodput_ingest.live.tail import Tail
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import followed

NOW = datetime(2026, 11, 20, 13)
ZONE = "Europe/Berlin"
TABLES = (
    *("job_events", "job_runs", "gpus", "collectives", "rank_map", "gpu_events"),
    *("serving_requests", "node_settings"),
)


def tail(log, folder):
    return Tail(str(folder), log.reads, cluster="lab", timezone=ZONE, node=log.node)


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
    """Return what a log gives that is read in whole."""
    path = folder / log.file
    path.write_text(log.text)
    ingest(store, log.reads, [path], ReadOptions("lab", ZoneInfo(ZONE), node=log.node))
    found = known(store)
    path.unlink()
    return found


def pieces_of(text):
    """Return the text in 17 pieces: half of the cuts are at the ends of lines, half anywhere."""
    chance = random.Random(text)  # noqa: S311 -- seeded, so that a failure comes again
    ends = [at + 1 for at, char in enumerate(text[:-1]) if char == "\n"]
    cuts = {*chance.sample(ends, min(len(ends), 8)), *chance.sample(range(1, len(text)), 8)}
    return [text[a:b] for a, b in itertools.pairwise((0, *sorted(cuts), len(text)))]


@pytest.mark.usefixtures("all_packages")
def test_each_followed_format_has_a_log_here():
    assert {log.reads for log in FOLLOWED_LOGS.values()} == set(followed())


@pytest.mark.parametrize("log", FOLLOWED_LOGS.values(), ids=FOLLOWED_LOGS)
def test_a_log_cut_anywhere_has_the_rows_of_the_whole_though_its_collector_restarts(
    emptied_store, tmp_path, log
):
    whole = of_whole(emptied_store(), log, tmp_path)
    store, source = emptied_store(), tail(log, tmp_path)

    since = {}
    for number, piece in enumerate(pieces_of(log.text)):
        if number in (9, 13):
            source, since = tail(log, tmp_path), reached(store)
        add(tmp_path / log.file, piece)
        follow(store, source, NOW, since)

    assert whole
    assert known(store) == whole


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["megatron_two_lives_and_a_hang", "serving-requests"])
def test_a_followed_log_in_utf_16_has_the_rows_of_one_in_utf_8(
    emptied_store, tmp_path, encoding, name
):
    log = FOLLOWED_LOGS[name]
    text = log.text.replace(
        "/ckpt", "/größer/\u0a0a/\U0001f680"
    )  # a line's end is a whole character
    log = replace(log, text=text)
    whole = of_whole(emptied_store(), log, tmp_path)
    store, source = emptied_store(), tail(log, tmp_path)
    content = f"\ufeff{text}".encode(encoding)

    for start in range(0, len(content), 501):
        with (tmp_path / log.file).open("ab") as file:
            file.write(content[start : start + 501])
        follow(store, source, NOW, {})

    assert whole
    assert known(store) == whole
