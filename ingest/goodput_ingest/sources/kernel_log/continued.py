"""Messages of the kernel that go over several lines, of which the first alone has time and node."""

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from goodput_ingest.formats import files, syslog
from goodput_ingest.formats.json_text import json_lines

JOINED_MAX = 10  # lines of a message
INDENTS = (" " * 4, "\t")  # of lines that go on with a message; a message may begin with one space


class Message(NamedTuple):
    """A message: the number of its first line, and its lines, the first with time and node.

    is_last: lines of the next part may go on with it.
    """

    number: int
    lines: tuple[str, ...]
    is_last: bool

    @property
    def text(self) -> str:
        """Return the message on one line."""
        return " ".join(self.lines)

    def growing(self) -> Iterator[str]:
        """Yield the message as it was after each of its lines."""
        yield from accumulate(self.lines, "{} {}".format)


class Continued:
    """Joins the lines of messages; `begun` is the last message of the parts before."""

    def __init__(self) -> None:
        """Begin before the first line."""
        self.begun: tuple[str, ...] = ()
        self._number = 0

    def messages(self, part: files.Part, worth: re.Pattern[str]) -> Iterator[Message]:
        """Yield the messages with a line that matches `worth`.

        One that went on in this part comes again, whole: it was yielded without these lines.
        """
        lines = (*self.begun, *part.lines)
        first_line = part.first_line - len(self.begun)
        of_part, read_to = len(self.begun), 0
        goes_on = of_part > 0 and len(lines) > of_part and _continues(lines[of_part])
        for index, text in enumerate(lines):
            if index < read_to or not worth.search(text):
                continue
            begin, read_to = index, index + 1
            while begin > 0 and _continues(lines[begin]):
                begin -= 1
            while read_to < len(lines) and _continues(lines[read_to]):
                read_to += 1
            if read_to <= of_part or (begin < of_part and not goes_on):
                continue
            rest = lines[begin + 1 : min(read_to, begin + JOINED_MAX)]
            number = self._number if begin < of_part else first_line + begin
            joined = (lines[begin], *map(_continued, rest))
            yield Message(number, joined, read_to == len(lines))
        last = next((i for i in range(len(lines) - 1, -1, -1) if not _continues(lines[i])), 0)
        self._number = self._number if last < of_part else first_line + last
        self.begun = lines[last : last + JOINED_MAX]


def _continues(text: str) -> bool:
    """Say whether a line belongs to the message of the line before, behind a collector's time."""
    stamp = json_lines.STAMPED.match(text)
    rest = text[stamp.end() :] if stamp else text
    return rest.startswith(INDENTS) and syslog.form_of(rest.lstrip()) is None


def _continued(text: str) -> str:
    """Return what a line adds to a message."""
    stamp = json_lines.STAMPED.match(text)
    return text[stamp.end() if stamp else 0 :].strip()
