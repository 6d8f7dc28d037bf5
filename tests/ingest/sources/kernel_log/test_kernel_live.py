# ruff: noqa: D102, DTZ001 -- names say it; moments are stored naive, in UTC
"""The kernel log, of files and live: a journal that grows and forgets, the kernel's own buffer."""

import contextlib
import json
import os
import sys
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.tables import each

from goodput_ingest.sources.kernel_log import live
from goodput_ingest.sources.kernel_log.live import KernelLogLive
from goodput_queries.errors import IngestError

NOON = datetime(2026, 11, 20, 12)
NOON_US = 1_795_176_000_000_000
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=7, name=python, GPU has fallen off the bus."
# a journal of entries (second, message) with the options of journalctl that are used
JOURNALCTL = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
arguments = sys.argv[2:]
with (folder / "asked").open("a") as file:
    file.write(json.dumps(arguments) + "\\n")
hint = folder / "hint"
if hint.exists():
    sys.stderr.write(hint.read_text())
assert "_TRANSPORT=kernel" in arguments and "--output=json" in arguments
entries = [json.loads(line) for line in (folder / "journal").read_text().splitlines()]
for argument in arguments:
    name, _, value = argument.partition("=")
    if name == "--since":
        since_us = float(value[1:]) * 1e6
        entries = [e for e in entries if int(e["__REALTIME_TIMESTAMP"]) >= since_us]
    elif name == "--after-cursor":
        cursors = [e["__CURSOR"] for e in entries]
        if value not in cursors:
            sys.stderr.write("Failed to seek to cursor: Invalid argument\\n")
            sys.exit(1)
        entries = entries[cursors.index(value) + 1:]
    elif name == "--lines":
        entries = entries[-int(value):]
for entry in entries:
    print(json.dumps(entry))
if (folder / "hang").exists() and not any("--lines" in a for a in arguments):
    sys.stdout.flush()
    import signal
    signal.pause()
"""


class Journal:
    """A folder that a stand-in for journalctl reads."""

    def __init__(self, folder):
        self.folder = folder
        self.size = 0
        (folder / "journal").touch()
        (folder / "journalctl.py").write_text(JOURNALCTL)

    def write(self, second, message):
        self.size += 1
        at = str(NOON_US + round(second * 1e6))
        entry = {"__CURSOR": f"s=1;i={self.size}", "__REALTIME_TIMESTAMP": at, "MESSAGE": message}
        entry |= dict.fromkeys(("_TRANSPORT", "SYSLOG_IDENTIFIER"), "kernel")
        with (self.folder / "journal").open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def asked(self):
        return [json.loads(line) for line in (self.folder / "asked").read_text().splitlines()]

    def source(self, **settings):
        script = (sys.executable, str(self.folder / "journalctl.py"), str(self.folder))
        command = (*script, "--no-pager", "--output=json")
        settings = {"cluster": "lab", "node": "node7", "journalctl": command, **settings}
        return KernelLogLive(**settings)


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path)


def load(store, source, now, **reached):
    since = {f"{log} of node7": at for log, at in reached.items()}
    return sum(store.load(batch).rows_new for batch in source.poll(since, now))


def test_an_xid_in_the_journal_is_an_exact_event_and_the_next_poll_asks_after_it(store, journal):
    source = journal.source()
    journal.write(1.5, "usb 1-1: new device")
    journal.write(2.25, XID)
    load(store, source, NOON)
    journal.write(3, XID.replace("79", "94"))

    assert load(store, source, NOON) == 1
    assert "--after-cursor=s=1;i=2" in journal.asked()[-1]
    assert not any({"-k", "-b", "--dmesg", "--boot"} & set(asked) for asked in journal.asked())
    columns = "cluster, node, pci_bus_id, ts, ts_precision, kind, code, message"
    found = store.read(f"select {columns} from raw.gpu_events order by ts").row(0)
    at = NOON + timedelta(seconds=2.25)
    assert found == ("lab", "node7", "00000000:9b:00.0", at, "exact", "xid", 79, XID)


@each(({}, {"journal": NOON}, -60), ({"lookback_s": 7_200}, {}, -3_600))
def test_a_first_poll_begins_before_the_store_else_as_set(store, journal, settings, since, first_s):
    for second in (-9_000, -3_600, -60, 60):
        journal.write(second, XID)

    load(store, journal.source(**settings), NOON + timedelta(hours=len(since)), **since)

    first = store.read("select min(ts) from raw.gpu_events").item()
    assert first == NOON + timedelta(seconds=first_s)


def test_a_journal_that_forgot_where_we_were_is_read_by_time_again(store, journal):
    source = journal.source()
    journal.write(1, XID)
    load(store, source, NOON)
    (journal.folder / "journal").write_text("")
    journal.size = 70
    journal.write(3, XID)

    with pytest.raises(IngestError, match="Failed to seek to cursor"):
        load(store, source, NOON)
    assert load(store, source, NOON) == 1


def test_entries_that_were_not_loaded_come_again(journal):
    source = journal.source()
    journal.write(1, XID)
    first = source.poll({}, NOON)
    next(first)
    first.close()  # the store refused the batch

    assert [batch.rows.height for batch in source.poll({}, NOON)] == [1]


def test_a_journal_that_does_not_end_in_time_gives_what_it_gave(store, journal):
    journal.write(1, XID)
    (journal.folder / "hang").touch()

    source = journal.source(timeout_s=3.0)

    with pytest.raises(IngestError, match="did not end within 3 s"):
        load(store, source, NOON)
    (journal.folder / "hang").unlink()
    load(store, source, NOON)

    assert store.read("select count(*) from raw.gpu_events").item() == 1
    assert "--after-cursor=s=1;i=1" in journal.asked()[-1]


def test_a_user_who_may_not_read_the_journal_is_reported(journal):
    (journal.folder / "hint").write_text("Hint: You are not seeing messages from other users.\n")
    with pytest.raises(IngestError, match="group systemd-journal"):
        list(journal.source().poll({}, NOON))


def test_many_entries_are_read_in_parts(journal, monkeypatch):
    monkeypatch.setattr(live, "LINES_A_PART", 2)
    for second in range(5):
        journal.write(second, XID)

    batches = list(journal.source().poll({}, NOON))

    assert [batch.rows.height for batch in batches] == [2, 2, 1]
    assert len({batch.digest for batch in batches}) == 3


def test_a_huge_entry_is_cut_and_the_next_one_is_read(store, journal):
    journal.write(1, "NVRM: " + "x" * 1_000_000)
    journal.write(2, XID)
    assert load(store, journal.source(), NOON) == 1
    assert store.read("select count(*) from raw.rejects").item() == 1


@pytest.fixture
def kmsg(tmp_path):
    """Give a pipe that is read as the kernel's buffer is, and its writing end."""
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    yield path, writer
    os.close(writer)
    os.close(reader)


def on_kmsg(path, booted_at=NOON):
    missing = {"journalctl": ("/nowhere/journalctl",), "booted_at": lambda: booted_at}
    return KernelLogLive(cluster="lab", node="node7", kmsg=path, **missing)


def entry(second, message, priority=3):
    return f"{priority},1071,{round(second * 1e6)},-;{message}\n SUBSYSTEM=pci\n".encode()


def test_without_a_journal_the_kernels_buffer_is_read_with_approximate_times(store, kmsg):
    """A program that writes into it is not the kernel."""
    path, writer = kmsg
    os.write(writer, entry(1.5, "usb 1-1: new device") + entry(2.5, XID))
    os.write(writer, entry(3, XID, priority=(1 << 3) | 6))
    source = on_kmsg(path)

    new = load(store, source, NOON)
    os.write(writer, entry(9, XID))
    newer = load(store, source, NOON)
    source.close()

    assert (new, newer) == (1, 1)
    rows = store.read("select ts, ts_precision, node, code from raw.gpu_events order by ts").rows()
    at = [NOON + timedelta(seconds=second) for second in (2.5, 9)]
    assert rows == [(one, "approximate", "node7", 79) for one in at]


def test_after_a_restart_events_of_the_buffer_that_the_store_has_are_not_doubled(store, kmsg):
    """The boot's moment comes out a little different every time it is worked out."""
    path, writer = kmsg
    os.write(writer, entry(10, XID) + entry(60, XID))
    source = on_kmsg(path, booted_at=NOON + timedelta(milliseconds=700))

    new = load(store, source, NOON, kmsg=NOON + timedelta(seconds=10))
    source.close()

    assert new == 1


def test_where_neither_log_can_be_read_the_error_shows_what_to_do(tmp_path):
    with pytest.raises(IngestError, match=r"cannot be read.*as root, or keep a journal"):
        list(on_kmsg(tmp_path / "none").poll({}, NOON))


def test_a_probe_says_which_log_is_read(journal, kmsg):
    journal.write(1, "usb 1-1: new device")
    assert journal.source().probe() == ["the journal of node7 has the kernel's messages"]
    assert "times are approximate" in on_kmsg(kmsg[0]).probe()[0]


def test_this_machines_own_kernel_log_is_read_where_that_is_allowed():
    with contextlib.closing(KernelLogLive()) as source:
        try:
            findings, batches = source.probe(), list(source.poll({}, NOON))
        except IngestError as error:
            pytest.skip(str(error))

    assert len(findings) == 1
    assert {batch.table for batch in batches} <= {"gpu_events"}


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def read(read_text):
    """Return what reads a log of these lines."""
    return lambda *lines, node="node7", **options: read_text(
        "kernel-log", "".join(line + "\n" for line in lines), node=node, **options
    )


def test_a_kernel_log_without_a_fault_has_no_rows_and_was_read(store, read_text):
    summary = read_text("auto", "[Tue Nov 18 13:00:00 2025] usb 1-1: new device\n")
    assert (summary.files, summary.rows, summary.rejects) == (1, 0, 0)
    assert store.read("select rows from state.ingested").item() == 0


def test_the_same_log_in_another_zone_is_read_again(read):
    line = "[Tue Nov 18 13:00:00 2025] " + XID

    found = [read(line, zone=zone) for zone in (BERLIN, BERLIN, ZoneInfo("UTC"))]

    assert [summary.rows_new for summary in found] == [1, 0, 1]
