# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""What a recording of NVML says happened: Xids, losses, a clock that was set."""

from datetime import datetime

import pytest
from tests.ingest.nvml_lines import META, read, reasons, record


def test_an_xid_event_is_of_its_gpu_and_dated_at_or_before(store, tmp_path):
    event = {"kind": "event", "t": 1795177772.0, "gpu": 0, "event": "xid", "xid": 94}

    read(store, record(tmp_path / "nvml.jsonl", META, event))

    columns = "node, gpu_uuid, pci_bus_id, ts, ts_precision, kind, code, message"
    assert store.read(f"select {columns} from raw.gpu_events").row(0) == (
        "vm",
        "GPU-a",
        "00000000:9b:00.0",
        datetime(2026, 11, 20, 12, 29, 32),
        "at_or_before",
        "xid",
        94,
        "NVML event: Xid 94",
    )


@pytest.mark.parametrize(
    ("event", "kind", "code"),
    [
        ("lost", "off_the_bus", 79),
        ("reset", "reset_required", None),
        ("silent", "unresponsive", None),
    ],
)
def test_a_gpu_that_was_lost_is_an_event(store, tmp_path, event, kind, code):
    line = {"kind": "event", "t": 1795177772.0, "gpu": 0, "event": event, "reason": "so"}

    read(store, record(tmp_path / "nvml.jsonl", META, line))

    found = store.read("select kind, code, message from raw.gpu_events").row(0)
    assert found == (kind, code, "NVML: so")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"event": "xid"}, "xid is missing"),
        ({"event": "xid", "xid": -1}, "xid is out of range"),
        ({"event": "party"}, "unknown event 'party'"),
        ({}, "event is missing"),
        ({"event": "xid", "xid": 79, "gpu": 7}, "no meta line before this one names GPU 7"),
    ],
)
def test_an_event_that_says_too_little_is_rejected(store, tmp_path, fields, reason):
    line = {"kind": "event", "t": 1795177772.0, "gpu": 0, **fields}

    read(store, record(tmp_path / "nvml.jsonl", META, line))

    assert reasons(store) == [(2, reason)]


def clock(t, mono):
    return {"kind": "clock", "t": t, "mono": mono}


def test_a_clock_that_was_set_is_reported_once(store, tmp_path):
    lines = (
        clock(1795177770.0, 100.0),
        clock(1795177780.2, 110.0),  # drifts
        clock(1795174190.0, 120.0),  # an hour back
        clock(1795174200.0, 130.0),
    )

    read(store, record(tmp_path / "nvml.jsonl", META, *lines))

    ((line, reason),) = reasons(store)
    assert line == 4
    assert reason.startswith("the node's clock was set by -3600.2 s")


def test_another_boot_is_no_clock_that_was_set(store, tmp_path):
    path = record(
        tmp_path / "nvml.jsonl", META, clock(1795177770.0, 9e6), META, clock(1795177870.0, 37.5)
    )

    assert read(store, path).rejects == 0
