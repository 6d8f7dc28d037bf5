"""Lines that look like a save, a restore or the end of a job, and are of no known format.

A fork or a library of its own prints them, and where nothing else in the log says the same, the
fact would be lost without a word: they are rejected, the first ones of each kind.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cached_property
from importlib.resources import files
from typing import Any, Final

import msgspec

from goodput_ingest.sources.job_logs.lines import Line

TEXT_MAX_CHARS: Final = 500
LEAST_LINES: Final = 3  # of a kind, before the log ends: a format may read one of it yet
LISTED_MAX: Final = 5


class UnreadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What such lines look like; words: one stands in each, in lower case.

    is_read_as: of events or phases, which say the same. is_last: the log may end at once after it.
    """

    looks_like: str
    words: tuple[str, ...]
    pattern: str
    is_read_as: frozenset[str]
    is_last: bool = False

    @cached_property
    def form(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.pattern, re.IGNORECASE)

    @property
    def reason(self) -> str:
        """Return why such a line is rejected."""
        return f"the line looks like {self.looks_like} and is of no known format"


FORMS: Final = msgspec.convert(
    tomllib.loads((files("goodput_ingest.sources.job_logs") / "almost.toml").read_text("utf-8"))[
        "unread"
    ],
    tuple[UnreadForm, ...],
)


class UnreadLines:
    """The first lines of each form, until the log says the same in a form that is read."""

    def __init__(self) -> None:
        """Begin with all forms."""
        self.lines = {form: list[Line]() for form in FORMS}

    def take(self, line: Line) -> None:
        """Keep a line that no format reads, if it looks like a fact."""
        text = line.text[:TEXT_MAX_CHARS]
        lower = text.lower()
        for form, lines in self.lines.items():
            for word in form.words:  # as a generator it takes twice the time
                if word in lower:
                    break
            else:
                continue
            if len(lines) < LISTED_MAX and form.form.search(text):
                lines.append(line)

    def forget(self, row: dict[str, Any]) -> None:
        """Forget the lines that say what an event does."""
        for form in [one for one in self.lines if {row["event"], row["phase"]} & one.is_read_as]:
            del self.lines[form]

    def due(self, *, at_end: bool) -> Iterator[tuple[Line, str]]:
        """Yield the lines to reject and why, each form once; at_end: the log ends here."""
        for form, lines in [*self.lines.items()]:
            if len(lines) >= (1 if at_end or form.is_last else LEAST_LINES):
                del self.lines[form]
                yield from ((line, form.reason) for line in lines)
