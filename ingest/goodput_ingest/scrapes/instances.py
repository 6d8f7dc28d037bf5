"""Whose series a file of scrapes has: the target of the line before each scrape, as a label."""

import re
from functools import cache
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit

from goodput_ingest.formats.prometheus_text.series import MARK

MARK_LINE: Final = re.compile(
    rb"^" + re.escape(MARK).encode() + rb"\S+(?:[ \t]+(?P<target>\S+))?[ \t]*$", re.MULTILINE
)


def with_instances(data: bytes, names: bytes) -> bytes:
    """Return the lines of scrapes with the target in front of them as their label `instance`.

    The series of two targets differ in nothing else. A series that has the label keeps it: a server
    that federates writes whose series it is.

    names: a pattern of the names of the metrics that are read
    """
    without_labels, with_labels = _patterns(names)
    marks = list(MARK_LINE.finditer(data))
    borders = [mark.end() for mark in marks] + [len(data)]
    found = [data[: borders[0]]]
    for mark, (start, end) in zip(marks, pairwise(borders), strict=True):
        text = data[start:end]
        if host := _host(mark["target"]):
            text = with_labels.sub(rb'\1{instance="%s",' % host, text)
            text = without_labels.sub(rb'\1{instance="%s"}' % host, text)
        found.append(text)
    return b"".join(found)


@cache
def _patterns(names: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    # both begin with text, for which Python searches faster than for the beginning of a line
    name = rb"(\n" + names + rb")"
    return (
        re.compile(name + rb"(?=[ \t])"),
        re.compile(name + rb'\{(?!(?:\w+="[^"\n]*",)*instance=)'),
    )


def _host(target: bytes | None) -> bytes:
    """Return host and port of a URL, less what would end a label; b"" where it names none."""
    try:
        host = urlsplit((target or b"").decode("utf-8", "replace")).netloc.rpartition("@")[2]
    except ValueError:
        return b""
    return re.sub(r'[\\"{}]', "", host).encode()
