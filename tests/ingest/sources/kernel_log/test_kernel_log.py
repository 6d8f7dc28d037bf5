# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from tests.tables import each

XID = "NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=python, MMU Fault"
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def read(read_text):
    """Return what reads a log of these lines."""
    return lambda *lines, node="node7", **options: read_text(
        "kernel-log", "".join(line + "\n" for line in lines), node=node, **options
    )


@each(
    ("Nov 18 13:00:00", datetime(2025, 11, 18, 12, 0, 1), 2025),
    ("Dec 31 23:00:00", datetime(2026, 1, 2), 2025),
    ("Nov 20 13:00:00", datetime(2025, 11, 18, 12), 2024),
    ("Feb 29 13:00:00", datetime(2026, 6, 1), 2024),
)
def test_a_time_without_a_year_is_the_last_before_the_collection(
    store, read, stamp, collected, year
):
    read(f"{stamp} node7 kernel: {XID}", zone=BERLIN, observed_at=collected)

    assert store.read("select year(ts) from raw.gpu_events").rows() == [(year,)]


def test_a_kernel_log_without_a_fault_has_no_rows_and_was_read(store, read_text):
    text = "[Tue Nov 18 13:00:00 2025] usb 1-1: new device\n[Tue Nov 18 13:00:01 2025] ok\n"

    summary = read_text("auto", text)

    assert (summary.files, summary.rows, summary.rejects) == (1, 0, 0)
    assert store.read("select rows from state.ingested").item() == 0


def test_the_same_log_in_another_zone_is_read_again(read):
    line = "[Tue Nov 18 13:00:00 2025] " + XID

    found = [read(line, zone=zone) for zone in (BERLIN, BERLIN, ZoneInfo("UTC"))]

    assert [summary.rows_new for summary in found] == [1, 0, 1]
