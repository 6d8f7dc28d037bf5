"""A line of a kernel log by its parts, also of the journal as JSON or behind what a collector adds.

    2026-11-29T08:17:02.5Z {host="gpu06", transport="kernel"} NVRM: Xid ...
    {"labels":{"host":"gpu06"},"line":"NVRM: Xid ...","timestamp":"2026-11-29T08:17:02.5Z"}
    {"date":1795940160.37,"_TRANSPORT":"kernel","_HOSTNAME":"gpu06","MESSAGE":"NVRM: Xid ..."}

Such are lines of Loki, Fluent Bit, Vector and Google's logging. The collector's time is the line's
where it has none with a year.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from goodput_ingest.formats import syslog
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError

MESSAGE_MAX_CHARS: Final = 1000
BOOT_STAMP: Final = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\] ?")
LOKI: Final = re.compile(
    rf"(?:{json_lines.STAMP})?{json_lines.STAMP}\s*\{{(?P<labels>\w+=\"[^\n]*?\")\}}\s+(?P<line>.*)",
    re.DOTALL,
)
LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
TEXTS: Final = (*json_lines.TEXTS_OF_WRAPPERS, "msg")
HOSTS: Final = ("_HOSTNAME", "hostname", "host", "nodename", "node")
OF_KERNEL: Final = ("_TRANSPORT", "SYSLOG_IDENTIFIER", "transport", "syslog_identifier", "job")
OF_DRIVER: Final = re.compile(r"(?:NVRM: |nvidia-|(?:Memory cgroup o|O)ut of memory)")
PROGRAM: Final = re.compile(r"(?P<tag>[^\s:\[]+)(?:\[\d+\])?: ")
NO_FIELD: Final = "the entry has no __REALTIME_TIMESTAMP or no MESSAGE"
YEARLESS: Final = ("yearless", "since_boot")


@dataclass(frozen=True)
class Line:
    """A line of a kernel log: when, in which form it says so, which node, what it says."""

    form: str
    when: str
    node: str | None
    message: str


def parsed(text: str) -> Line | None:
    """Return a kernel's line by its parts; None where it is none, or nothing says when it was.

    Raises FieldError for JSON that is not of the journal or a collector.
    """
    if (loki := LOKI.match(text)) is not None:
        labels = dict(LABEL.findall(loki["labels"]))
        return _of_collector({"line": loki["line"], "timestamp": loki[2], "labels": labels})
    line = json_lines.unlabelled(text)
    if not line.startswith("{"):
        return _split(text)
    entry = json_lines.record(line)
    return _journal_entry(entry) if "__REALTIME_TIMESTAMP" in entry else _of_collector(entry)


def _split(text: str) -> Line | None:
    if (found := syslog.form_of(text)) is None:
        return None
    form, parts = found
    message = BOOT_STAMP.sub("", (parts["message"] or "").lstrip())[:MESSAGE_MAX_CHARS]
    if (tag := parts.get("tag", "kernel")) is None:
        repeated = syslog.REPEATED.fullmatch(message)
        tag = _program(repeated["message"] if repeated else message)
    if tag != "kernel":
        return None  # a program that quotes the kernel
    return Line(form, parts.get("when") or "", parts.get("host"), message)


def _program(message: str) -> str:
    """Return the program that a message begins with; the kernel where it begins with none."""
    named = PROGRAM.match(message)
    return named["tag"] if named and OF_DRIVER.match(message) is None else "kernel"


def _journal_entry(entry: dict[str, Any]) -> Line | None:
    """Return a line of `journalctl -o json`; a message with odd bytes is a list of numbers."""
    if "kernel" not in (entry.get("_TRANSPORT"), entry.get("SYSLOG_IDENTIFIER")):
        return None
    message = entry.get("MESSAGE", entry.get("message"))  # as Vector calls it
    if isinstance(message, list):
        try:
            message = bytes(message).decode("utf-8", "replace")
        except (TypeError, ValueError):
            raise FieldError("MESSAGE is a list that is not of bytes") from None
    when = json_lines.text(entry, "__REALTIME_TIMESTAMP") or ""
    if not isinstance(message, str) or not when.isdecimal() or not when.isascii():
        raise FieldError(NO_FIELD)
    seconds = int(when[:18]) / 1e6
    return Line("unix", str(seconds), _host(entry), message[:MESSAGE_MAX_CHARS])


def _of_collector(entry: dict[str, Any]) -> Line | None:
    """Return the kernel's line that a collector wrapped."""
    text = next((entry[name] for name in TEXTS if isinstance(entry.get(name), str)), None)
    labels = entry["labels"] if isinstance(entry.get("labels"), dict) else {}
    known = {**labels, **entry}
    at = next((entry[n] for n in json_lines.TIMES_OF_WRAPPERS if isinstance(entry.get(n), str)), "")
    form, when = "offset", at
    if not at and isinstance(entry.get("date"), float | int):  # Fluent Bit
        form, when = "unix", str(float(entry["date"]))
    is_of_kernel = "kernel" in (known.get(name) for name in OF_KERNEL)
    if text is None or not when or (at and json_lines.WITH_OFFSET.fullmatch(at) is None):
        if is_of_kernel:
            raise FieldError(NO_FIELD)
        return None
    if text.startswith("{"):
        return _of_collector({**labels, **json_lines.record(text), "timestamp": at})
    if (line := _split(text)) is not None:
        node = line.node or _host(known)
        if line.form not in YEARLESS:
            return Line(line.form, line.when, node, line.message)
        return Line(form, when, node, line.message)
    if syslog.form_of(text) is not None:
        return None
    if not is_of_kernel and OF_DRIVER.match(text) is None:
        return None
    return Line(form, when, _host(known), BOOT_STAMP.sub("", text)[:MESSAGE_MAX_CHARS])


def _host(entry: dict[str, Any]) -> str | None:
    return next((found for name in HOSTS if (found := json_lines.text(entry, name, 255))), None)
