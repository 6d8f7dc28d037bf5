"""The loop over live sources and its hold on the store: no source stops another."""

import contextlib
import itertools
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.ingest.fake_live import (
    PATIENCE_S,
    Fake,
    Hands,
    SetClock,
    ask,
    at,
    collector,
    running,
    seconds_of,
    status_of,
)
from tests.tables import each, gives
from tests.until import until

from goodput_ingest.live import status as live_status
from goodput_ingest.live.scheduler import BACKOFF_MAX_S, Clock, Collection, next_due_s
from goodput_ingest.live.store_lease import Held, Shared, collector_lock, is_collected
from goodput_queries.errors import IngestError, StoreError


@pytest.fixture
def hour():
    return SetClock()


def test_a_source_that_fails_or_hangs_stops_no_other_and_is_seen(store, hour):
    bad, hung = Hands(failing=IngestError("bad: is away.")), Hands(gate=threading.Event())
    good = Fake("good")
    with running(store, hour.clock(), Fake("hung", hands=hung), Fake("bad", hands=bad), good):
        good.hands.wait_for_polls(5)
        bad.wait_for_polls(2)
        status = status_of(store, "hung")

    assert seconds_of(store, "good") == list(range(60))
    assert [status_of(store, name)["error"] for name in ("bad", "good")] == ["bad: is away.", None]
    assert (status["asked_at"], status["answered_at"]) == (at(60), None)


def test_a_poll_that_takes_long_says_how_far_it_is(store, hour, caplog):
    clock = Clock(hour.clock().now, itertools.count(0, 25).__next__)
    ask(store, clock, Fake(hands=Hands(last_second=30)))
    assert caplog.messages == ["fake (a): loading, 20 rows, up to 2026-11-20 12:00:19 UTC"]


def test_an_unexpected_exception_is_a_sentence_its_traceback_comes_on_request(store, hour, caplog):
    source = Fake(hands=Hands(failing=ZeroDivisionError("by zero")))

    (error,) = ask(store, hour.clock(), source)

    where = r"unexpected ZeroDivisionError at goodput_ingest\.live\.scheduler:.*: by zero\. "
    assert re.match(rf"fake \(a\): {where}", error)
    assert "Traceback" not in caplog.text
    with caplog.at_level("DEBUG"):
        ask(store, hour.clock(), source)
    assert "Traceback" in caplog.text


def test_a_poll_without_memory_is_no_failure_of_its_source(store, hour):
    source = Fake(hands=Hands(failing=MemoryError()))
    with pytest.raises(MemoryError):
        ask(store, hour.clock(), source)


def test_after_an_outage_and_by_a_new_process_nothing_is_missing_or_twice(store, hour):
    source = Fake()
    ask(store, hour.clock(), source)
    source.hands.failing = IngestError("a: is away.")
    hour.second = 100
    ask(store, hour.clock(), source)
    hour.second = 200
    later = Fake()
    ask(store, hour.clock(), later)

    assert later.hands.reached == [{"a": at(60)}]
    assert seconds_of(store) == list(range(200))


def test_a_source_without_times_goes_on_from_its_last_good_poll(store, hour):
    """Accounting, as an example: its rows are records, not readings at a moment."""
    silent = Fake()
    for second, failing in ((0, None), *[(100, IngestError("a: is away."))] * 2):
        hour.second, silent.hands.failing = second, failing
        ask(store, hour.clock(), silent)

    assert silent.hands.reached[1:] == [{"a": at(0)}, {"a": at(0)}]


def test_a_clock_that_ran_ahead_does_not_make_a_hole(store, hour, caplog):
    source = Fake(hands=Hands(last_second=60))
    with running(store, hour.clock(), source):
        source.hands.wait_for_polls(2)
        hour.second = 86_400
        source.hands.wait_for_polls(2)
    assert re.search(r"this machine's clock jumped by \+863[34]\d s", caplog.text)

    hour.second = source.hands.last_second = 90
    ask(store, hour.clock(), source)

    assert seconds_of(store) == list(range(90))


def test_a_status_of_a_wrong_clock_is_no_place_to_go_on_and_no_status_is_evidence(store):
    """Otherwise each poll would rebuild the ledger and every page."""
    ahead = live_status.Status("fake", "a", at(0), 10).answered(at(86_400))
    live_status.write(store, [ahead])

    assert live_status.reached(store, "fake", at(90)) == {}
    assert store.read("select count(*) from state.source_status").item() == 1
    assert store.read("select count(*) from state.ingested").item() == 0


def test_the_status_reports_since_when_and_how_often_a_source_fails(store, hour):
    source = Fake()
    ask(store, hour.clock(), source)
    for second in (70, 80):
        hour.second = second
        source.hands.failing = IngestError(f"a: is away at {second}." + "x" * 1_000)
        ask(store, hour.clock(), source)

    status = status_of(store)
    assert len(str(status.pop("error"))) == live_status.ERROR_MAX_CHARS
    assert status == {
        "source": "fake", "origin": "a", "asked_at": at(80), "answered_at": at(60),
        "failing_since_at": at(70), "failures": 2, "interval_s": 0.01, "retired_at": None,
    }  # fmt: skip


def test_the_log_says_what_changed_and_no_more(store, hour, caplog):
    source = Fake(hands=Hands(failing=IngestError("a: is away.")))
    with running(store, hour.clock(), source):
        source.hands.wait_for_polls(3)
        source.hands.failing = None
        source.hands.wait_for_polls(3)

    first, second = (r.message for r in caplog.records if r.levelno == logging.WARNING)
    assert first == "fake (a): a: is away."
    assert second.startswith("fake (a) answers again after ")


def test_a_store_that_takes_nothing_is_tried_again(store, hour, monkeypatch):
    load, is_full = store.load, threading.Event()

    def load_unless_full(batch, **given):
        if is_full.is_set():
            raise StoreError("the disk is full.")
        return load(batch, **given)

    monkeypatch.setattr(store, "load", load_unless_full)
    is_full.set()
    source = Fake()
    with running(store, hour.clock(), source):
        source.hands.wait_for_polls(1)
        is_full.clear()
        source.hands.wait_for_polls(2)

    assert seconds_of(store) == list(range(60))


def test_stopping_ends_after_the_batch_under_way(store, hour):
    hour.second = 1_000_000  # a hundred thousand batches
    source = Fake()
    with running(store, hour.clock(), source):
        until(lambda: seconds_of(store), "a batch is loaded", within_s=PATIENCE_S)

    assert len(seconds_of(store)) < 1_000_000
    assert source.hands.is_closed
    assert status_of(store)["answered_at"] is None  # it has not read all there was


def test_a_source_that_does_not_end_is_named(store, hour):
    gate = threading.Event()
    source = Fake(hands=Hands(gate=gate))
    collection = Collection([collector(source)], Held(store), hour.clock())
    collection.start()
    assert not source.hands.polled.acquire(blocking=False)

    assert collection.stop(0) == ["collect fake (a)"]
    gate.set()
    assert collection.stop(PATIENCE_S) == []


test_a_source_that_answers_is_asked_in_a_rhythm_and_what_was_missed_is_left_out = gives(
    lambda due_s, now_s: next_due_s(due_s, now_s, 30.0, failures=0),
    (0, 1, 30), (0, 29.9, 30), (0, 30, 60), (0, 95, 120), (30, 31, 60),
)  # fmt: skip


@each((5, 1, 5), (5, 2, 10), (5, 3, 20), (5, 5, 60), (5, 10_000, 60), (300, 1, 300), (300, 9, 300))
def test_a_source_that_fails_is_asked_later_each_time_to_a_minute(interval_s, failures, longest_s):
    wait = [next_due_s(0, 100, interval_s, failures, lambda c=c: c) - 100 for c in (0.0, 1.0)]
    assert wait == [longest_s, longest_s / 2]
    assert longest_s <= max(BACKOFF_MAX_S, interval_s)


def test_a_source_that_was_asked_to_end_ends_by_itself(store, hour):
    """While a server ends its last build, nothing new waits to be written."""
    source = Fake()
    with running(store, hour.clock(), source) as collection:
        source.hands.wait_for_polls(1)
        collection.end()

        until(lambda: source.hands.is_closed, "the source is closed", within_s=PATIENCE_S)


@contextlib.contextmanager
def process_with(program, path):
    """Give a process that holds what a program takes of a path, once it has it, until its end."""
    program += "print('has it', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", f"import sys; {program}", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        yield other
        other.communicate()


def test_between_leases_the_file_is_free(tmp_path, empty_database):
    stores = Shared(empty_database)
    with stores.lease() as first, stores.lease() as second:
        assert first is second
    sees = "import sys, duckdb; duckdb.connect(sys.argv[1]).close()"

    subprocess.run([sys.executable, "-c", sees, str(empty_database)], check=True, cwd=tmp_path)
    stores.close()


def test_a_file_that_another_process_has_is_a_stated_failure(empty_database):
    stores = Shared(empty_database, wait_s=0)
    other = process_with("import duckdb; c = duckdb.connect(sys.argv[1]); ", empty_database)
    with other, pytest.raises(StoreError, match="another process"), stores.lease():
        pass

    with stores.lease() as store:
        assert store.read("select 1").item() == 1


def test_two_threads_share_one_opening(empty_database):
    stores = Shared(empty_database)
    barrier = threading.Barrier(4, timeout=PATIENCE_S)

    def use(_):
        with stores.lease() as store:
            barrier.wait()
            return store

    with ThreadPoolExecutor(4) as threads:
        assert len(set(map(id, threads.map(use, range(4))))) == 1


def test_one_process_collects_into_a_database(tmp_path):
    database = tmp_path / "fleet.duckdb"
    with collector_lock(database):
        assert is_collected(database)
        with pytest.raises(StoreError) as caught, collector_lock(database):
            pass
    assert str(caught.value) == (
        f"{database}: process {os.getpid()} collects into this database already. Stop that "
        "process first."
    )
    assert not is_collected(database)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.machine
def test_a_killed_collector_is_out_of_the_way(tmp_path):
    database = tmp_path / "fleet.duckdb"
    holds = (
        "from goodput_ingest.live.store_lease import collector_lock\n"
        "with collector_lock(sys.argv[1]): "
    )
    with process_with(holds, database) as other:
        assert is_collected(database)
        other.send_signal(signal.SIGKILL)
        other.wait()
        with collector_lock(database):
            assert is_collected(database)


def test_a_memory_database_is_nobody_elses():
    with collector_lock(":memory:"), collector_lock(":memory:"):
        assert not is_collected(":memory:")
