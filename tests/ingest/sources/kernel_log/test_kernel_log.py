# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from goodput_ingest.run.ingest import Summary
    from goodput_queries.storage.store import LocalStore

EXTERNAL = Path(os.environ.get("GOODPUT_EXTERNAL_DATA", "nowhere"))
XID_119_LOG = EXTERNAL / "dcgm" / "gpud__dmesg-with-xid-119.log"
XID = "NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=python, MMU Fault"
BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2025, 11, 18, 12)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "kernel.log"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def read(
    store: LocalStore,
    path: Path,
    zone: ZoneInfo | None = None,
    observed_at: datetime | None = None,
    node: str | None = "node7",
) -> Summary:
    options = ReadOptions(zone=zone, observed_at=observed_at, node=node)
    return ingest(store, "kernel-log", [path], options)


def when(store: LocalStore) -> list[tuple[datetime, str, str | None]]:
    rows = store.read("select ts, ts_precision, node from raw.gpu_events order by ts").rows()
    return [(ts, precision, node) for ts, precision, node in rows]


@pytest.mark.parametrize(
    ("stamp", "precision"),
    [
        ("2025-11-18T12:00:00+0000 node7 kernel: ", "exact"),
        ("2025-11-18T12:00:00.000000+00:00 node7 kernel: ", "exact"),
        ("2025-11-18T13:00:00+0100 node7 kernel: [ 123.456789] ", "exact"),
        ("2025-11-18T12:00:00,000000+00:00 ", "approximate"),
        ("1763467200.000000 node7 kernel: ", "exact"),
        ("Tue 2025-11-18 12:00:00 UTC node7 kernel: ", "exact"),
        ("[Tue Nov 18 13:00:00 2025] ", "approximate"),
        ("2025-11-18 13:00:00 node7 kernel: ", "exact"),
        ("Nov 18 13:00:00 node7 kernel: [ 123.456789] ", "exact"),
        ("Nov 18 13:00:00.000000 node7 kernel: ", "exact"),
    ],
)
def test_every_form_of_time_becomes_utc(
    store: LocalStore, tmp_path: Path, stamp: str, precision: str
) -> None:
    path = write(tmp_path, stamp + XID)

    read(store, path, BERLIN, observed_at=datetime(2025, 12, 1))

    assert when(store) == [(NOON, precision, "node7")]
    assert store.read("select message from raw.gpu_events").item() == XID


def test_an_entry_of_the_journal_as_json_is_exact(store: LocalStore, tmp_path: Path) -> None:
    entry = {
        "__REALTIME_TIMESTAMP": "1763467200000001",
        "_HOSTNAME": "node7",
        "_TRANSPORT": "kernel",
        "MESSAGE": XID,
    }

    read(store, write(tmp_path, json.dumps(entry)))

    assert when(store) == [(NOON.replace(microsecond=1), "exact", "node7")]


@pytest.mark.parametrize(
    "line", ["[Tue Nov 18 13:00:00 2025] " + XID, "2025-11-18 13:00:00 node7 kernel: " + XID]
)
def test_a_local_time_needs_its_zone(store: LocalStore, tmp_path: Path, line: str) -> None:
    with pytest.raises(IngestError, match=r"carries no offset from UTC.*--timezone"):
        read(store, write(tmp_path, line))


@pytest.mark.parametrize("stamp", ["[Tue Nov 18 13:00:00 2025] ", "2025-11-18T12:00:00+00:00 "])
def test_a_log_that_names_no_node_needs_an_option(
    store: LocalStore, tmp_path: Path, stamp: str
) -> None:
    with pytest.raises(IngestError, match=r"do not name their node.*--node"):
        read(store, write(tmp_path, stamp + XID), BERLIN, node=None)


def test_a_time_without_a_year_needs_the_day_of_collection(
    store: LocalStore, tmp_path: Path
) -> None:
    with pytest.raises(IngestError, match=r"times carry no year.*--observed-at"):
        read(store, write(tmp_path, "Nov 18 13:00:00 node7 kernel: " + XID), BERLIN)


@pytest.mark.parametrize(
    ("stamp", "collected", "year"),
    [
        ("Nov 18 13:00:00", datetime(2025, 11, 18, 12, 0, 1), 2025),
        ("Dec 31 23:00:00", datetime(2026, 1, 2), 2025),
        ("Nov 20 13:00:00", datetime(2025, 11, 18, 12), 2024),
        ("Feb 29 13:00:00", datetime(2026, 6, 1), 2024),
    ],
)
def test_a_time_without_a_year_is_the_last_before_the_collection(
    store: LocalStore, tmp_path: Path, stamp: str, collected: datetime, year: int
) -> None:
    read(store, write(tmp_path, f"{stamp} node7 kernel: {XID}"), BERLIN, collected)

    assert [ts.year for ts, _, _ in when(store)] == [year]


@pytest.mark.parametrize(
    "stamp", ["[12345.678901] ", "[    5.678901] ", "<4>[ 1.000000] ", "4,1234,567890123,-;"]
)
def test_times_since_boot_are_refused_with_what_to_do(
    store: LocalStore, tmp_path: Path, stamp: str
) -> None:
    with pytest.raises(IngestError, match=r"count from boot.*dmesg -T.*journalctl"):
        read(store, write(tmp_path, stamp + XID), BERLIN)


@pytest.mark.parametrize(
    ("hour", "what"), [("Oct 26 02:30", "comes twice"), ("Mar 30 02:30", "does not exist")]
)
def test_a_local_time_that_the_clocks_make_twice_or_never_is_rejected(
    store: LocalStore, tmp_path: Path, hour: str, what: str
) -> None:
    read(store, write(tmp_path, f"[Sun {hour}:00 2025] {XID}"), BERLIN)

    assert what in store.read("select reason from raw.rejects").item()
    assert when(store) == []


@pytest.mark.parametrize(
    ("message", "kind", "code", "pci"),
    [
        ("NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.", "xid", 79, "9b"),
        ("NVRM: Xid (0000:9B:00): 13, 0001 00000000", "xid", 13, "9b"),
        ("NVRM: Xid (PCI:00000000:9b:00.0): 45, Ch 1", "xid", 45, "9b"),
        ("NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 94, pid=1", "xid", 94, "9b"),
        ("NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed", "xid", 154, "9b"),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal", "sxid", 12028, "c1"),
        ("NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.", "off_the_bus", 79, "9b"),
        ("NVRM: GPU at PCI:0000:9b:00 has fallen off the bus.", "off_the_bus", 79, "9b"),
        ("NVRM: fallen off the bus and is not responding.", "off_the_bus", 79, None),
    ],
)
def test_every_form_of_a_fault_is_found(
    store: LocalStore, tmp_path: Path, message: str, *, kind: str, code: int, pci: str | None
) -> None:
    read(store, write(tmp_path, f"2025-11-18T12:00:00+0000 node7 kernel: {message}"))

    found = store.read("select kind, code, pci_bus_id from raw.gpu_events").row(0)
    assert found == (kind, code, f"00000000:{pci}:00.0" if pci else None)


def test_a_notice_over_several_lines_keeps_its_gpu(store: LocalStore, tmp_path: Path) -> None:
    stamp = "2025-11-18T12:00:00+0000 node7 kernel: "
    lines = (
        stamp + "NVRM: The NVIDIA GPU 0000:b4:00.0",
        stamp + "NVRM: (PCI ID: 10de:2330) installed in this system has",
        stamp + "NVRM: fallen off the bus and is not responding to commands.",
        stamp + "something else",
        stamp + "NVRM: fallen off the bus, of which nothing is said nearby",
    )

    read(store, write(tmp_path, *lines))

    found = store.read("select pci_bus_id from raw.gpu_events order by 1 nulls last").rows()
    assert found == [("00000000:b4:00.0",), (None,)]


def test_pid_and_process_are_taken_from_the_line(store: LocalStore, tmp_path: Path) -> None:
    stamp = "2025-11-18T12:00:00+0000 node7 kernel: "
    unknown = "NVRM: Xid (PCI:0000:9b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper"

    read(store, write(tmp_path, stamp + XID, stamp + unknown))

    found = store.read("select code, pid, process_name from raw.gpu_events order by code").rows()
    assert found == [(31, "7", "python"), (63, None, None)]


def test_repeats_are_kept(store: LocalStore, tmp_path: Path) -> None:
    lines = [f"2025-11-18T12:00:0{i}+0000 node7 kernel: {XID}" for i in (0, 1, 2)]

    assert read(store, write(tmp_path, *lines)).rows_new == 3


def test_a_program_that_quotes_the_kernel_is_no_evidence(store: LocalStore, tmp_path: Path) -> None:
    lines = (
        "2025-11-18T12:00:00+0000 node7 kernel: all is well",
        f"2025-11-18T12:00:00+0000 node7 gpud[12]: {XID}",
    )

    summary = read(store, write(tmp_path, *lines))

    assert (summary.rows, summary.rejects) == (0, 0)


def test_a_fault_that_cannot_be_read_is_rejected(store: LocalStore, tmp_path: Path) -> None:
    stamp = "2025-11-18T12:00:00+0000 node7 kernel: "
    lines = (stamp + "NVRM: Xid (somewhere): a new form", XID)

    read(store, write(tmp_path, *lines))

    assert store.read("select line, reason from raw.rejects order by line").rows() == [
        (1, "the line has an Xid in an unknown format"),
        (2, "the line has no timestamp"),
    ]


def test_a_kernel_log_without_a_fault_has_no_rows_and_was_read(
    store: LocalStore, tmp_path: Path
) -> None:
    path = write(
        tmp_path, "[Tue Nov 18 13:00:00 2025] usb 1-1: new device", "[Tue Nov 18 13:00:01 2025] ok"
    )

    summary = ingest(store, "auto", [path], ReadOptions())

    assert (summary.files, summary.rows, summary.rejects) == (1, 0, 0)
    assert store.read("select rows from state.ingested").item() == 0


def test_the_same_log_in_another_zone_is_read_again(store: LocalStore, tmp_path: Path) -> None:
    path = write(tmp_path, "[Tue Nov 18 13:00:00 2025] " + XID)

    first = read(store, path, BERLIN)
    again = read(store, path, BERLIN)
    other = read(store, path, ZoneInfo("UTC"))

    assert (first.rows_new, again.rows_new, other.rows_new) == (1, 0, 1)


def test_a_grown_log_adds_only_what_is_new(store: LocalStore, tmp_path: Path) -> None:
    path = write(tmp_path, f"2025-11-18T12:00:00+0000 node7 kernel: {XID}")
    read(store, path)
    with path.open("a") as file:
        file.write(f"2025-11-18T12:00:05+0000 node7 kernel: {XID}\n")

    assert read(store, path).rows_new == 1


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("PCI:0000:9B:00", "00000000:9b:00.0"),
        ("00000000:9b:00.0", "00000000:9b:00.0"),
        ("9b:00.1", "00000000:9b:00.1"),
        ("0018:01:00", "00000018:01:00.0"),
        ("GPU-a", None),
        (None, None),
    ],
)
def test_pci_addresses_have_one_form(text: str | None, normal: str | None) -> None:
    assert pci_bus_id(text) == normal


@pytest.mark.external
@pytest.mark.skipif(not XID_119_LOG.exists(), reason="needs $GOODPUT_EXTERNAL_DATA")
def test_a_published_log_has_five_xid_119_of_one_gpu(store: LocalStore) -> None:
    read(store, XID_119_LOG, ZoneInfo("UTC"))

    found = store.read("select code, pci_bus_id, count(*) from raw.gpu_events group by all").rows()
    assert found == [(119, "00000000:9b:00.0", 5)]


@pytest.mark.parametrize(
    "message",
    [
        "Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
        "Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB",
        "Out of memory: Kill process 4711 (python) score 900 or sacrifice child",
    ],
)
def test_a_process_that_the_kernel_ended_for_memory_is_an_event_of_the_node(
    store: LocalStore, tmp_path: Path, message: str
) -> None:
    path = write(tmp_path, f"2025-11-18T12:00:00+0000 node7 kernel: {message}")

    read(store, path)

    found = store.read("select node, ts, kind, pid, process_name from raw.node_events").rows()
    assert found == [("node7", NOON, "oom_kill", "4711", "python")]


def test_a_program_that_quotes_the_kernel_ended_no_process(
    store: LocalStore, tmp_path: Path
) -> None:
    quoted = "Out of memory: Killed process 4711 (python)"
    path = write(
        tmp_path,
        f"2025-11-18T12:00:00+0000 node7 watcher: {quoted}",
        f"2025-11-18T12:00:00+0000 node7 kernel: {XID}",
    )

    read(store, path)

    assert store.read("select count(*) from raw.node_events").item() == 0
