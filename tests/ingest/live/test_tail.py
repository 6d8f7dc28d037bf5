# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""A followed file: what is new in it, what it lacks, what cannot be read."""

import functools
import itertools
import json
import os
from datetime import datetime

import pytest
from tests.ingest import fake_live
from tests.ingest.fake_live import add, reached
from tests.ingest.golden_cases import golden_path
from tests.ingest.job_log_lines import ITERATION
from tests.tables import each

from goodput_ingest.live import tail
from goodput_ingest.live.status import Status
from goodput_ingest.live.tail import Tail
from goodput_queries.errors import IngestError

NOW = datetime(2026, 11, 20, 13)
START_S = 1795178033


def event(step, **fields):
    record = {"v": 1, "ts": START_S + step, "event": "step", "step": step, "run_id": "r", "rank": 0}
    return json.dumps(record | fields) + "\n"


def steps(first, last):
    return "".join(event(step) for step in range(first, last + 1))


follow = functools.partial(fake_live.follow, now=NOW)


def known_steps(store):
    return store.read("select step from raw.job_events order by 1")["step"].to_list()


@pytest.fixture
def job_events(tmp_path):
    return Tail(folder=str(tmp_path), reads="job-events")


@each({"shorter": 1, "longer than before": 30})
def test_a_truncated_file_begins_again(store, tmp_path, job_events, more):
    path = add(tmp_path / "a.jsonl", steps(1, 10))
    follow(store, job_events)
    path.write_text(steps(11, 10 + more))

    assert follow(store, job_events) == more
    assert known_steps(store) == list(range(1, 11 + more))


def test_what_the_store_did_not_take_is_read_again(store, tmp_path, job_events):
    add(tmp_path / "a.jsonl", steps(1, 3))
    polled = job_events.poll({}, NOW)
    next(iter(polled))
    polled.close()

    assert follow(store, job_events) == 3


def test_a_restart_goes_on_a_little_before_the_latest_moment_stored(store, tmp_path, monkeypatch):
    monkeypatch.setattr(tail, "PROBE_BYTES", 2_000)
    path = add(tmp_path / "a.jsonl", steps(1, 2_000))
    follow(store, Tail(str(tmp_path), "job-events"))
    add(path, steps(2_001, 2_010))

    rows = follow(store, Tail(str(tmp_path), "job-events"), since=reached(store))

    assert known_steps(store) == list(range(1, 2_011))  # no hole, no double
    assert 10 + 60 <= rows < 150  # the new ones, the overlap of 60 s, at most two parts looked at


def test_a_line_too_long_is_rejected_once_others_are_read(store, tmp_path, job_events, monkeypatch):
    monkeypatch.setattr(tail, "CHUNK_BYTES", 1_000)
    path = add(tmp_path / "a.jsonl", event(1) + '{"v": "' + "x" * 5_300 + '"}\n' + event(3))
    follow(store, job_events)
    add(path, event(4) + "{broken\n")
    follow(store, job_events)

    assert known_steps(store) == [1, 3, 4]
    assert store.read("select line from raw.rejects order by 1")["line"].to_list() == [2, 5]


def test_no_more_than_a_chunk_is_read_at_once(tmp_path, job_events, monkeypatch):
    monkeypatch.setattr(tail, "CHUNK_BYTES", 1_000)
    add(tmp_path / "a.jsonl", steps(1, 100))

    sizes = [batch.rows.height for batch in job_events.poll({}, NOW)]

    assert sum(sizes) == 100
    assert max(sizes) <= 1_000 // len(event(1))


def test_a_poll_ends_after_its_share_and_the_next_goes_on(store, tmp_path, job_events, monkeypatch):
    monkeypatch.setattr(tail, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(tail, "POLL_BYTES", 2_500)
    for name in ("a", "b"):  # both are longer than the share of a poll
        add(tmp_path / f"{name}.jsonl", "".join(event(s, run_id=name) for s in range(1, 41)))

    polls = list(itertools.takewhile(bool, iter(lambda: follow(store, job_events), None)))

    assert len(polls) > 2
    counted = store.read("select run_id, count(*) from raw.job_events group by 1 order by 1")
    assert counted.rows() == [("a", 40), ("b", 40)]


def test_a_file_that_cannot_be_read_stops_no_other(store, tmp_path):
    xid = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
    add(tmp_path / "a.log", f"2026-11-20 12:00:00 a kernel: {xid}\n")  # of what zone?
    add(tmp_path / "b.log", f"2026-11-20T12:00:00+00:00 b kernel: {xid}\n")
    source = Tail(str(tmp_path), "kernel-log")

    with pytest.raises(IngestError, match=r"a\.log") as raised:
        follow(store, source)

    assert "goodput-tail" not in str(raised.value)  # the name of the file, not of our copy
    assert store.read("select node from raw.gpu_events").item() == "b"


def test_packed_hidden_and_other_files_are_passed_over(store, tmp_path, job_events):
    (tmp_path / "a.jsonl.gz").write_bytes(b"\x1f\x8b")
    add(tmp_path / ".a.swp", event(1))
    add(tmp_path / "notes.txt", "nothing\n")

    assert follow(store, job_events) == 0
    assert job_events.probe() == [f"{tmp_path}: 0 of 1 files are job-events."]


MARKED = golden_path("nccl_inspector/records_without_a_header/input.log")
MARKER = json.loads(MARKED.read_text().splitlines()[1])


def drain(number, operations=20):
    """Return what an Inspector writes that gives the header once, then bare records."""
    dumped = {"dump_timestamp_us": (START_S + 10 * number) * 1_000_000}
    marker = MARKER | {"metadata": MARKER["metadata"] | dumped}
    first = number * operations
    return json.dumps(marker) + "\n" + "".join(map(bare, range(first, first + operations)))


def bare(number):
    perf = {"coll": "AllReduce", "coll_sn": number, "coll_exec_time_us": 5}
    return json.dumps({"coll_perf": perf}) + "\n"


def test_after_a_restart_records_without_header_have_their_drains(store, tmp_path, monkeypatch):
    monkeypatch.setattr(tail, "PROBE_BYTES", 3_000)  # a drain has some 1,700 bytes
    path = add(tmp_path / "vm-pid7.log", "".join(map(drain, range(50))))
    follow(store, Tail(str(tmp_path), "nccl-inspector"))
    add(path, bare(1_000))

    rows = follow(store, Tail(str(tmp_path), "nccl-inspector"), since=reached(store))

    assert rows < 500  # it did not begin from the beginning
    found = store.read("select count(*), count(distinct sequence_number) from raw.collectives")
    assert found.row(0) == (1_001, 1_001)  # a wrong header would make a second row
    assert store.read("from raw.rejects").height == 0


@each(
    ({"reads": "job-evens"}, "there is no source 'job-evens'"),
    ({"folder": "/nowhere"}, "no such folder to follow"),
    ({"timezone": "Mars"}, "there is no time zone 'Mars'"),
    ({"reads": "job-log"}, r"with `timezone` under \[\[collect\]\], such as"),
)
def test_wrong_settings_are_named(store, tmp_path, settings, said):
    add(tmp_path / "a.jsonl", event(1))
    add(tmp_path / "b.out", ITERATION.format(second=11, step=1, ms=1000.0))
    source = Tail(**({"folder": str(tmp_path), "reads": "job-events"} | settings))

    with pytest.raises(IngestError, match=said):
        follow(store, source)


def test_a_file_that_is_rewritten_every_interval_is_read_again(store, tmp_path):
    """The Inspector's Prometheus mode: no time inside, so the file's own counts."""
    path = tmp_path / "nccl_inspector_metrics_55aa8e95-02cb-59dd-8a6f-15cbd706e86e.prom"
    labels = 'node="vm",gpu="GPU0",collective="AllReduce",message_size="4-5MB"'
    source = Tail(str(tmp_path), "nccl-inspector", pattern="*.prom")
    for number, value in enumerate((300.5, 200.5, 200.5)):
        path.write_text(f"nccl_bus_bandwidth_gbs{{{labels}}} {value}\n")
        os.utime(path, (START_S + 30 * number, START_S + 30 * number))
        follow(store, source)

    found = store.read(
        "select epoch(ts)::int, busbw_bytes_per_s from raw.collective_summaries order by 1"
    ).rows()
    assert found == [(START_S, 300.5e9), (START_S + 30, 200.5e9), (START_S + 60, 200.5e9)]


def test_a_file_that_fails_is_skipped_until_it_has_doubled(store, tmp_path, job_events, breaking):
    read = breaking(KeyError("step"))
    bad, good = add(tmp_path / "bad.jsonl", steps(1, 3)), tmp_path / "good.jsonl"
    for step in range(tail.TRIES_MAX):
        add(good, event(step))
        with pytest.raises(IngestError, match=r"bad\.jsonl: unexpected KeyError at goodput_"):
            follow(store, job_events)
    add(good, event(tail.TRIES_MAX))
    add(bad, steps(4, 5))

    assert follow(store, job_events) == 1
    assert read.count("bad.jsonl") == tail.TRIES_MAX
    assert known_steps(store) == list(range(tail.TRIES_MAX + 1))
    assert job_events.skipped.startswith(f"{bad}: skipped after {tail.TRIES_MAX} failures")
    add(bad, steps(6, 9))
    with pytest.raises(IngestError):
        follow(store, job_events)


def test_what_is_skipped_is_named_while_the_source_is_well():
    status = Status("job-events", "/logs", NOW, 5.0).failed(NOW, "x").answered(NOW, "a: skipped")
    assert (status.failures, status.error) == (0, "a: skipped")
    assert status.answered(NOW).error is None


STEP_LINE = ITERATION.format(second=11, step=1, ms=1000.0)
SAVE_LINE = "  successfully saved checkpoint of iteration 1 to /ckpt\n"


@pytest.fixture
def logs(tmp_path):
    return Tail(folder=str(tmp_path), reads="job-log", pattern="*.out", timezone="UTC")


def said_of(logs, store, tmp_path, text):
    """Return what is said of a log with this text, once it was polled."""
    (tmp_path / "train.out").write_text(text)
    follow(store, logs)
    return (logs.skipped or "").replace(f"{tmp_path}/", "")


# until a save has a time
UNDATED = "Training epoch 0, iteration 0/9 | lr: 1 | global_step: 0 | train_step_timing in s: 2.5\n"


@each({
    "a step": (STEP_LINE, ""),  # young: the first save may come yet
    "a save of another form": (
        STEP_LINE + SAVE_LINE, "train.out: job-log: steps and no finished save were read; line 2"),
    "a step of another form": (
        "[titan] starting\n[titan] x step: 1 loss: 2\n", "train.out: job-log: no row was read"),
    "a step without a time": (
        UNDATED, f"train.out: job-log: no row was read; line 1 ({UNDATED[:75]}"),
})  # fmt: skip
def test_what_a_followed_log_lacks_is_said(logs, store, tmp_path, text, said):
    found = said_of(logs, store, tmp_path, text)
    assert found[: len(said)] == said
    assert bool(found) == bool(said)


def test_a_log_that_gives_what_was_missing_is_named_no_more(logs, store, tmp_path):
    assert said_of(logs, store, tmp_path, STEP_LINE + SAVE_LINE)

    whole = STEP_LINE + SAVE_LINE + SAVE_LINE.replace(" of ", " from ")

    assert said_of(logs, store, tmp_path, whole) == ""


def test_doctor_names_what_files_of_a_followed_folder_lack(logs, tmp_path):
    (tmp_path / "a.out").write_text(STEP_LINE + SAVE_LINE)
    (tmp_path / "b.out").write_text('{"current_steps": 3, "total_steps": 10, "loss": 1.2}\n')

    _, first, second = (text.replace(f"{tmp_path}/", "") for text in logs.probe())

    assert first.startswith("a.out: job-log: steps and no finished save were read")
    assert second.startswith("b.out: trainer_log.jsonl of LLaMA-Factory is not r")
