"""The changes that are tried: one operator, one order, or two cases that trade places."""

import re
from dataclasses import dataclass

SWAPS = (
    (r" <= ", " < "),
    (r" >= ", " > "),
    (r" < ", " <= "),
    (r" > ", " >= "),
    (r" and ", " or "),
    (r" or ", " and "),
    (r" not (?!null\b)", " "),
    (r" is null\b", " is not null"),
    (r" is not null\b", " is null"),
    (r" desc\b", " asc"),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\barg_min\(", "arg_max("),
    (r"\barg_max\(", "arg_min("),
    (r" \+ ", " - "),
    (r"\bleast\(", "greatest("),
    (r"\bgreatest\(", "least("),
)
CASE = re.compile(r"\s+when .* then .*")


@dataclass(frozen=True)
class Mutation:
    """The whole text of a file with one change: in which line, from 1, and what it is."""

    line: int
    change: str
    text: str


def mutations_of(text, is_sql):
    """Yield every single change of a file's code; comments and docstrings stay."""
    lines = text.split("\n")
    is_in_docstring = False
    for number, line in enumerate(lines):
        if not is_sql and line.count('"""') % 2:
            is_in_docstring = not is_in_docstring
            continue
        code = line.split("--" if is_sql else "#", 1)[0]
        if is_in_docstring or not code.strip() or '"""' in line:
            continue
        for pattern, other in SWAPS:
            for match in re.finditer(pattern, code):
                new = {number: line[: match.start()] + other + line[match.end() :]}
                yield _changed(lines, number, new, f"{line.strip()} -> {other.strip()}")
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if CASE.fullmatch(code) and CASE.fullmatch(following):
            swapped = {number: following, number + 1: line}
            yield _changed(lines, number, swapped, f"{line.strip()} after the next case")


def _changed(lines, number, new, change):
    text = "\n".join(new.get(place, line) for place, line in enumerate(lines))
    return Mutation(number + 1, change, text)
