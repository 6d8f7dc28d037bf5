"""Messages of the kernel that go over several lines, of which the first alone has time and node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_ingest.formats import syslog
from goodput_ingest.formats.json_text import json_lines

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from goodput_ingest.formats import files

JOINED_MAX = 10  # lines of a message
INDENTS = (" " * 4, "\t")  # of lines that go on with a message; a message may begin with one space


class Continued:
    """Joins the lines of messages; `begun` is the last line before a part that began one."""

    def __init__(self) -> None:
        """Begin before the first line."""
        self.begun = ""

    def messages(self, part: files.Part, worth: re.Pattern[str]) -> Iterator[tuple[int, str]]:
        """Yield the messages with a line that matches `worth`, each with its first line's number.

        A message whose beginning was in the part before has been looked at without these lines:
        they come with its time and node alone.
        """
        lines, read_to = part.lines, 0
        for index, text in enumerate(lines):
            if index < read_to or not worth.search(text):
                continue
            begin, read_to = index, index + 1
            while begin >= 0 and _continues(lines[begin]):
                begin -= 1
            while read_to < len(lines) and _continues(lines[read_to]):
                read_to += 1
            rest = [
                _continued(line) for line in lines[begin + 1 : min(read_to, begin + JOINED_MAX)]
            ]
            first = lines[begin] if begin >= 0 else _without_message(self.begun)
            yield part.first_line + max(begin, 0), " ".join([first, *rest])
        self.begun = next((text for text in reversed(lines) if not _continues(text)), self.begun)


def _continues(text: str) -> bool:
    """Say whether a line belongs to the message of the line before, behind a collector's time."""
    stamp = json_lines.STAMPED.match(text)
    rest = text[stamp.end() :] if stamp else text
    return rest.startswith(INDENTS) and syslog.form_of(rest.lstrip()) is None


def _continued(text: str) -> str:
    """Return what a line adds to a message."""
    stamp = json_lines.STAMPED.match(text)
    return text[stamp.end() if stamp else 0 :].strip()


def _without_message(text: str) -> str:
    """Return the time, node and program of a line that begins a message."""
    found = syslog.form_of(text)
    message = (found[1]["message"] or "") if found else ""
    return text[: len(text) - len(message)].rstrip() if message else text
