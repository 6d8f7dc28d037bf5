"""Lines that say when they were written and of which node and program: syslog, journal, dmesg."""

import re
from collections import Counter
from typing import Final

MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
HEAD_LINES: Final = 200
HEAD_LINE_MAX_CHARS: Final = 400
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_OFFSET = r"(?:Z|[+-]\d\d:?\d\d)"
_REPEATED = r"message repeated \d{1,9} times: \["  # may stand in place of the program
_TAGGED = (
    r" (?P<host>[^\s:]+) "
    rf"(?:(?P<tag>[^\s:\[]+)(?:\[\d+\])?: |(?={_REPEATED}))(?P<message>.*)"
)
_PRIORITY = r"(?:<\d{1,3}>)?"  # as syslog sends it
_LEVEL = r"(?:[a-z0-9]{1,8} *:[a-z]{1,6} *: )?"  # of dmesg -x
_MONTH = f"(?:{'|'.join(MONTHS)})"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
REPEATED: Final = re.compile(rf"{_REPEATED} ?(?P<message>.*?)\]?", re.DOTALL)  # as syslog sums up
FORMS: Final = {  # how a line says when it was written; tried in this order
    "dmesg_t": rf"{_LEVEL}\[{_DAY} (?P<when>{_MONTH} [ \d]\d \d\d:\d\d:\d\d \d{{4}})\] ?"
    r"(?P<message>.*)",
    "offset": rf"{_PRIORITY}(?P<when>{_ISO}{_OFFSET}){_TAGGED}",
    "rfc5424": rf"(?:<\d{{1,3}}>1 )?(?P<when>{_ISO}{_OFFSET}) (?P<host>\S+) (?P<tag>\S+) "
    r"(?:-|\d+) \S+ (?:-|\[.*?\]) \ufeff?(?P<message>.*)",
    "dmesg_iso": rf"(?P<when>{_ISO}{_OFFSET})(?: (?:stdout|stderr) [FP])? (?P<message>.*)",
    "local": rf"(?P<when>{_ISO}){_TAGGED}",
    "full": rf"{_DAY} (?P<when>{_ISO}) UTC{_TAGGED}",
    "unix": rf"(?P<when>\d{{9,10}}\.\d{{1,9}}){_TAGGED}",
    "yearless": rf"{_PRIORITY}(?P<when>{_MONTH} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{{1,9}})?){_TAGGED}",
    "since_boot": rf"{_LEVEL}(?:(?:<\d+>)?\[ *\d+\.\d{{3,9}}\]|\d+,\d+,\d+,[^;]{{1,40}};)"
    r"(?P<message>.*)",
}
STAMPED: Final = {name: re.compile(pattern, re.DOTALL) for name, pattern in FORMS.items()}


def form_of(text: str) -> tuple[str, dict[str, str | None]] | None:
    """Return a line's form and its parts (when, host, tag, message); None for any other line.

    A collector writes its own time before the line, just as `dmesg --time-format iso` does: it is
    the line's only where that has none.
    """
    for form, pattern in STAMPED.items():
        if (match := pattern.match(text)) is None:
            continue
        if form == "dmesg_iso":
            inner = form_of(match["message"])
            if inner is not None and inner[0] != "since_boot":
                return inner
        return form, match.groupdict()
    return None


def first_lines(head: bytes) -> list[str]:
    """Return the first lines of a file that are not blank, each cut."""
    lines = head.decode("utf-8", "replace").splitlines()[:HEAD_LINES]
    return [line[:HEAD_LINE_MAX_CHARS] for line in lines if line.strip()]


def is_of_nodes(head: bytes) -> bool:
    """Say whether most of the first lines name node and program, and some are of the kernel."""
    tags = _tags(head)
    return 2 * len(tags) > len(first_lines(head)) and "kernel" in tags


def is_of_a_program(head: bytes) -> bool:
    """Say whether one program but the kernel wrote most of the first lines that name one."""
    tags = _tags(head)
    ((tag, lines),) = Counter(tags).most_common(1) or [("kernel", 0)]
    return tag != "kernel" and 2 * lines > len(tags)


def _tags(head: bytes) -> list[str]:
    found = (form[1] for form in map(form_of, first_lines(head)) if form is not None)
    return [tag for parts in found if (tag := parts.get("tag")) is not None]
