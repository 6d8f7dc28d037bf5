# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""Logs that are rotated while they are followed: renamed, or copied and cut."""

import json
import os
import shutil
from dataclasses import replace
from datetime import datetime

import pytest
from tests.ingest import fake_live
from tests.ingest.fake_live import add, reached
from tests.tables import gives

from goodput_ingest.formats.rotation import unrotated
from goodput_ingest.live import tail
from goodput_ingest.live.tail import Tail

pytest.importorskip("goodput_formats_extra", reason="follows a format that keeps state")
NOW = datetime(2026, 11, 20, 13)
START_S = 1787234410


def google(**fields):
    return json.dumps({"job_name": "run7"} | fields) + "\n"


def starts(first, last):
    """Return the starts of steps as ml-goodput-measurement writes them."""
    steps = range(first, last + 1)
    return "".join(google(step_count=n, step_start_time=START_S + 10.0 * n) for n in steps)


def follow(store, source):
    fake_live.follow(store, source, NOW, reached(store))


def steps(store):
    sql = "select step from raw.job_events where event = 'step.start' order by 1"
    return store.read(sql)["step"].to_list()


def copy_and_cut(path):
    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)


def rename(path):
    path.rename(path.with_name(f"{path.name}.1"))


@pytest.fixture
def log(tmp_path):
    return tmp_path / "run.jsonl"


@pytest.fixture
def source(tmp_path):
    return Tail(str(tmp_path), "goodput-events", "*.jsonl")


@pytest.fixture(params=[False, True], ids=["running", "restarted"])
def later(request):
    """Return the source after a rotation: the same, or that of a new process."""
    return replace if request.param else lambda source: source


@pytest.mark.parametrize("rotate", [rename, copy_and_cut])
def test_a_rotation_loses_no_line(store, log, source, rotate, later):
    add(log, google(job_start_time=START_S - 9.0) + starts(0, 3))
    follow(store, source)
    add(log, starts(4, 5))  # after the poll and before the rotation
    rotate(log)
    add(log, starts(6, 7))
    source = later(source)
    follow(store, source)
    follow(store, source)
    add(log, google(job_end_time=START_S + 80.0))
    follow(store, source)

    assert steps(store) == list(range(8))
    assert store.read("select distinct origin from state.ingested").item() == str(log)
    assert store.read("from raw.job_events where event = 'job.end'").height == 1


def test_what_a_log_said_before_a_rotation_holds_after_it(store, tmp_path, later):
    """Old iterations of Megatron have no moment: they follow the start of training."""
    log, source = tmp_path / "run.log", Tail(str(tmp_path), "job-log", timezone="UTC")
    iteration = " iteration {:8}/ 500 | elapsed time per iteration (ms): 2000.0 | lm loss: 7.1 |\n"
    start = "[before the start of training step] datetime: 2020-08-20 14:02:20 \n"
    add(log, start + iteration.format(1))
    follow(store, source)
    rename(log)
    add(log, iteration.format(2) + iteration.format(3))
    follow(store, later(source))

    found = "select step, second(ts) from raw.job_events where event = 'step' order by 1"
    assert store.read(found).rows() == [(1, 22), (2, 24), (3, 26)]


def test_a_process_that_goes_on_writing_to_the_renamed_file_is_followed(store, log, source, later):
    with log.open("a") as file:
        file.write(google(job_start_time=START_S - 9.0) + starts(0, 3))
        file.flush()
        follow(store, source)
        rename(log)
        file.write(starts(4, 6))
    follow(store, later(source))

    assert steps(store) == list(range(7))


def test_a_file_that_was_removed_is_let_go_of(store, log, source):
    add(log, starts(0, 3))
    follow(store, source)
    log.unlink()
    follow(store, source)

    assert (source._places, source._readers) == ({}, {})
    add(log, starts(4, 6))
    follow(store, source)
    assert steps(store) == list(range(7))


def test_several_rotations_are_read_oldest_first(store, log, source):
    for number, name in enumerate(("run.jsonl.2", "run.jsonl.1", "run.jsonl")):
        add(log.with_name(name), starts(3 * number, 3 * number + 2))
    follow(store, source)
    assert steps(store) == list(range(9))


def test_too_many_logs_are_let_go_of_and_read_again_on_growth(store, tmp_path, source, monkeypatch):
    monkeypatch.setattr(tail, "READERS_MAX", 1)
    for name in ("a", "b"):
        add(tmp_path / f"{name}.jsonl", starts(0, 2).replace("run7", name))
    follow(store, source)
    for name in ("a", "b"):
        add(tmp_path / f"{name}.jsonl", starts(3, 4).replace("run7", name))
    follow(store, source)

    assert len(source._readers) == 1
    assert steps(store) == sorted([0, 1, 2, 3, 4] * 2)


def test_ranks_whose_files_end_with_a_number_are_logs_of_their_own(store, tmp_path):
    source = Tail(str(tmp_path), "job-events")
    for rank in (0, 1):
        event = {"v": 1, "ts": START_S, "event": "step", "step": 1, "run_id": "r", "rank": rank}
        add(tmp_path / f"events.jsonl.{rank}", json.dumps(event) + "\n")
    follow(store, source)

    origins = store.read("select distinct origin from state.ingested order by 1")["origin"]
    assert origins.to_list() == [str(tmp_path / f"events.jsonl.{rank}") for rank in (0, 1)]


test_the_name_before_a_rotation = gives(
    unrotated,
    ("train.log.1", "train.log"), ("slurm-14.out-20260820", "slurm-14.out"),
    ("a.jsonl.20260820-14", "a.jsonl"), ("syslog.12", "syslog"), ("train.log.old", "train.log"),
    ("events.rank.3", "events.rank.3"), ("llama3.2024", "llama3.2024"),
    ("slurm-14.out", "slurm-14.out"),
)  # fmt: skip
