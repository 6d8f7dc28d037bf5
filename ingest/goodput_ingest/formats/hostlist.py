"""Expands Slurm's bracket notation for node names: `node[001-003,007]`.

Grammar: expressions separated by commas outside brackets; each is text and bracket groups in any
order; a group lists numbers and ranges `lo-hi`; the width of `lo` is kept by zero padding; several
groups multiply, the first varying slowest. Checked against `scontrol show hostnames` of 24.11.
"""

import re
from itertools import product

from goodput_queries.errors import IngestError

HOSTS_MAX = 1_000_000
NO_HOSTS = frozenset({"", "None assigned", "(null)", "None", "N/A", "n/a"})
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class HostlistError(IngestError, ValueError):
    """A text that is no host list, or one that stands for more hosts than the limit."""


def expand(text: str, limit: int = HOSTS_MAX) -> list[str]:
    """Return the host names in order; bad brackets or over `limit` names raise HostlistError."""
    if text.strip() in NO_HOSTS:
        return []
    hosts: list[str] = []
    for expression in _split(text.strip()):
        hosts += _expand_one(expression, limit - len(hosts))
    return hosts


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    if "[" not in text and "]" not in text:
        return text.split(",")
    parts: list[str] = []
    start = depth = 0
    for i, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
        if depth not in (0, 1):
            raise HostlistError(f"host list {text[:80]!r} has unbalanced brackets.")
    if depth:
        raise HostlistError(f"host list {text[:80]!r} has unbalanced brackets.")
    return [*parts, text[start:]]


def _expand_one(expression: str, limit: int) -> list[str]:
    if not expression or " " in expression or not expression.isprintable():
        raise HostlistError(f"host list has {expression[:80]!r} where a host name is expected.")
    groups: list[list[str]] = []
    size = 1
    for ranges, literal in _PIECE.findall(expression):
        groups.append([literal] if literal else _numbers(ranges, limit))
        size *= len(groups[-1])
        if size > limit:
            raise HostlistError(f"host list {expression[:80]!r} stands for too many hosts.")
    if limit < 1:
        raise HostlistError(f"host list with {expression[:80]!r} stands for too many hosts.")
    return ["".join(pieces) for pieces in product(*groups)]


def _numbers(ranges: str, limit: int) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        if (match := _RANGE.fullmatch(item)) is None:
            raise HostlistError(f"host list has [{ranges[:80]}] where numbers are expected.")
        low, high = match[1], match[2] or match[1]
        count = int(high) - int(low) + 1
        if count < 1:
            raise HostlistError(f"host list has a range that runs backwards: {item}.")
        if count + len(numbers) > limit:
            raise HostlistError(f"host list has [{ranges[:80]}], which is too many hosts.")
        numbers += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return numbers
