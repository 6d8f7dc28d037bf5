"""Drafts a profile from a log: the lines that repeat with a rising number are its steps."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from goodput_ingest.sources.job_logs.lines import Line, cleaned
from goodput_ingest.sources.job_logs.profile_examples import read
from goodput_ingest.sources.job_logs.profiles.profile import Example, loads
from goodput_queries.errors import IngestError

LINES_MAX: Final = 20_000
LINE_MAX_CHARS: Final = 1_000
LEAST_LINES: Final = 3
EXAMPLE_LINES: Final = 3
EXAMPLE_AT: Final = datetime.fromisoformat("2026-01-01T00:00:00")
TIME: Final = re.compile(
    r"(?P<time>20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"|\d\d/\d\d(?P<year>/20\d\d)? (?P<clock>\d\d:\d\d:\d\d)"
)
TIME_PATTERNS: Final = {
    "time": r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)",
    "year": r"(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4}) (?P<clock>\d\d:\d\d:\d\d)",
    "clock": r"(?P<month>\d\d)/(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)",
}
NUMBER: Final = re.compile(
    r"(?<![A-Za-z_\d.])[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE
)
INTEGER: Final = re.compile(r"\d[\d,]*")
STEP_PATTERN: Final = r"[\d,]{1,15}"
NUMBER_PATTERN: Final = r"[-+\w.,]{1,30}"
# parts of a progress bar, which differ from line to line, and the patterns of them
BARS: Final = {
    "\x01": (re.compile(r"\d{1,3}%\|[^|]*\|"), r"\d{1,3}%\|[^|]{0,300}\|"),
    "\x02": (re.compile(r"\[[\d:]+<[\d:?]+"), r"\[[\d:]{1,15}<[\d:?]{1,15}"),
}
STEP_WORD: Final = re.compile(
    r"(?:\x01\s*|(?:step|iter(?:ation)?|batch|update|it)s?\W{0,4})$", re.IGNORECASE
)
AMOUNTS: Final = tuple(  # of a number, by the text before it and behind it
    (name, re.compile(before, re.IGNORECASE), re.compile(after, re.IGNORECASE))
    for name, before, after in (
        ("steps_per_s", "", r"\s?(?:it|iter|step)s?/s"),
        ("step_s", "", r"\s?s(?:ec)?/(?:it|step)"),
        ("step_ms", "", r"\s?ms/(?:it|step)"),
        ("tokens_per_s", "", r"\s?tok(?:en)?s?/s"),
        ("tokens_per_s", r"\btok(?:en)?s?\W?(?:per|/)\W?s(?:ec(?:ond)?)?\W{0,4}$", ""),
        ("loss", r"(?<!val)(?<!valid)(?<!eval)(?<!test)[-_ ]?\bloss\W{0,4}$", ""),
        ("mfu_percent", r"mfu\W{0,4}$", r"\s?%"),
        ("step_ms", r"(?:time|elapsed|took|duration|dt)\w*\W{0,4}$", r"\s?ms\b"),
        ("step_s", r"(?:time|elapsed|took|duration|dt)\w*\W{0,4}$", r"\s?s(?:ec(?:ond)?s?)?\b"),
    )
)
OTHERS: Final = tuple(  # lines besides steps
    (means, re.compile(pattern, re.IGNORECASE))
    for means, pattern in (
        ("save_begin", r"\bsaving\b.{0,40}\b(?:checkpoint|ckpt|state)"),
        ("save_end", r"\bsaved\b.{0,40}\b(?:checkpoint|ckpt|state)"),
        ("restore_begin", r"\b(?:loading|restoring)\b.{0,40}\bcheckpoint"),
        ("restore_end", r"\b(?:loaded|restored)\b.{0,40}\bcheckpoint"),
    )
)
LENGTHS: Final = {"step_s", "step_ms"}
EXPECTED: Final = {"event": "event", "step": "step", "at": "ts", "dur_s": "dur_s", "loss": "loss"}


@dataclass(frozen=True)
class _Shape:
    """A line cut at its numbers, with a NUL for its time and the keys of BARS for a bar's parts.

    time: a key of TIME_PATTERNS, '' for a line without a time. texts: those around the numbers.
    """

    line: Line
    time: str
    texts: tuple[str, ...]
    numbers: tuple[str, ...]


def draft(name: str, lines: Sequence[str]) -> str:
    """Return a profile as TOML; raises IngestError where no lines repeat with a rising number."""
    shapes = _shapes(lines)
    steps, place = _steps(shapes)
    ends = _ends(shapes, steps, place)
    text = "\n".join(_toml(name, steps, place, ends, _others(shapes)))
    shown = sorted(steps[:EXAMPLE_LINES] + ends[:EXAMPLE_LINES], key=lambda one: one.line.number)
    example = "\n".join(map(_example, range(len(shown)), shown))
    rows, _ = read(loads(text, name), Example(example, (), "UTC"))
    return "\n".join(
        (
            text,
            "\n[[example]]",
            'timezone = "UTC"',
            f"text = {_literal(f'{chr(10)}{example}{chr(10)}')}",
            "expected = [",
            *(f"    {{{', '.join(_expected(row))}}}," for row in rows),
            "]\n",
        )
    )


def has_steps(lines: Sequence[str]) -> bool:
    """Say whether lines repeat with a rising number, so that a profile can be drafted."""
    try:
        return bool(_steps(_shapes(lines)))
    except IngestError:
        return False


def _shapes(lines: Sequence[str]) -> list[_Shape]:
    if "".join(lines[:1]).strip() in ("{", "["):
        raise IngestError("it is one JSON document, not the lines of a log.")
    return [
        _shape(line)
        for number, raw in enumerate(lines[:LINES_MAX], 1)
        for line in cleaned(number, raw)
    ]


def _example(number: int, shape: _Shape) -> str:
    """Return a line; one without a time gets that of a collector."""
    if shape.time:
        return shape.line.text
    at = shape.line.at or EXAMPLE_AT + timedelta(seconds=number)
    return f"{at.isoformat()}Z {shape.line.text}"


def _shape(line: Line) -> _Shape:
    text, time = line.text[:LINE_MAX_CHARS], ""
    if (found := TIME.search(text[:100])) is not None:
        time = next(key for key in TIME_PATTERNS if found[key] is not None)
        text = f"{text[: found.start()]}\0{text[found.end() :]}"
    for key, (form, _) in BARS.items():
        text = form.sub(key, text)
    return _Shape(line, time, tuple(NUMBER.split(text)), tuple(NUMBER.findall(text)))


def _steps(shapes: Sequence[_Shape]) -> tuple[list[_Shape], int]:
    """Return the lines that are steps, and which of their numbers is the step's."""
    found = [
        ((STEP_WORD.search(group[0].texts[place]) is not None, len(group), -place), group, place)
        for group in _groups(shapes)
        for place in range(len(group[0].numbers))
        if _rises([shape.numbers[place] for shape in group])
    ]
    if not found:
        raise IngestError(
            f"no {LEAST_LINES} lines of one form have a number that rises: there are no steps to "
            f"draft a profile from in the first {LINES_MAX:,} lines."
        )
    _, group, place = max(found, key=lambda one: one[0])
    return group, place


def _groups(shapes: Sequence[_Shape]) -> list[list[_Shape]]:
    """Return the lines of each form that repeats."""
    groups = defaultdict[tuple[str, tuple[str, ...]], list[_Shape]](list)
    for shape in shapes:
        groups[shape.time, shape.texts].append(shape)
    return [group for group in groups.values() if len(group) >= LEAST_LINES]


def _ends(shapes: Sequence[_Shape], steps: Sequence[_Shape], place: int) -> list[_Shape]:
    """Return lines that say how long each step was, where those with the number say nothing more.

    Such a number is printed when its step begins.
    """
    if _amounts(steps, place):
        return []
    of_steps = (group for group in _groups(shapes) if abs(len(group) - len(steps)) <= 1)
    return next((one for one in of_steps if LENGTHS & {*_amounts(one).values()}), [])


def _rises(numbers: Sequence[str]) -> bool:
    """Say whether they are whole numbers, of which nearly each is larger than the one before."""
    if not all(map(INTEGER.fullmatch, numbers)):
        return False
    values = [int(number.replace(",", "")) for number in numbers]
    rises = sum(after > before for before, after in pairwise(values))
    return rises >= 0.9 * (len(values) - 1)


def _others(shapes: Sequence[_Shape]) -> dict[str, _Shape]:
    """Return the first line of each other meaning."""
    found: dict[str, _Shape] = {}
    for shape in shapes:
        for means, pattern in OTHERS:
            if means not in found and pattern.search("0".join(shape.texts)):
                found[means] = shape
    return found


def _toml(
    name: str,
    steps: Sequence[_Shape],
    place: int,
    ends: Sequence[_Shape],
    others: dict[str, _Shape],
) -> Iterator[str]:
    pattern = _pattern(steps[0], {place: "step", **_amounts(steps, place)})
    hints = dict.fromkeys(map(_hint, (steps[0], *ends[:1], *others.values())))
    yield f"# A draft from {len(steps)} lines: look at each pattern, then `goodput profile try`."
    yield f'name = "{re.sub(r"[^a-z0-9_-]", "-", name.lower())}"'
    yield f"marks = [{_literal(re.sub(r'[(][?]P<[a-z_]+>', '(?:', pattern))}]"
    yield f"hints = [{', '.join(map(_literal, hints))}]"
    means = "training" if ends else "step"
    yield f'\n[[line]]\nmeans = "{means}"\npattern = {_literal(pattern)}'
    if ends:
        pattern = _pattern(ends[0], _amounts(ends))
        yield f'\n[[line]]\nmeans = "step"\npattern = {_literal(pattern)}'
    for means, shape in others.items():
        at = next((i for i, text in enumerate(shape.texts[:-1]) if STEP_WORD.search(text)), None)
        names = {at: "step"} if at is not None and means == "save_end" else {}
        yield f'\n[[line]]\nmeans = "{means}"'
        if means == "save_end":
            yield "durable = true # if the line is printed when the save is complete"
        yield f"pattern = {_literal(_pattern(shape, names))}"


def _amounts(lines: Sequence[_Shape], place: int = -1) -> dict[int, str]:
    """Return the numbers of a step's lines whose unit is known, by their place.

    A time that rises from line to line is that since the job began.
    """
    found: dict[int, str] = {}
    for number in range(len(lines[0].numbers)):
        before, after = lines[0].texts[number : number + 2]
        values = [_value(shape.numbers[number]) for shape in lines]
        is_total = all(later > earlier for earlier, later in pairwise(values))
        for name, is_before, is_after in AMOUNTS:
            fits = is_before.search(before) and is_after.match(after)
            is_new = name not in found.values() and not (is_total and name in LENGTHS)
            if number != place and fits and is_new:
                found[number] = name
                break
    return found


def _value(number: str) -> float:
    return float(number.replace(",", "") or "nan")


def _pattern(shape: _Shape, names: dict[int, str]) -> str:
    """Return the pattern of a line, with named groups for the numbers at these places."""
    found = _escaped(shape.texts[0], shape.time)
    for place, text in enumerate(shape.texts[1:]):
        name = names.get(place)
        number = STEP_PATTERN if name == "step" else NUMBER_PATTERN
        found += f"(?P<{name}>{number})" if name else number
        found += _escaped(text, shape.time)
    return found.strip()


def _escaped(text: str, time: str) -> str:
    """Return a text as a pattern: any number of blanks, the groups of its time."""
    parts = (re.sub(r"(?:\\[ \t])+", r"\\s+", re.escape(part)) for part in text.split("\0"))
    found = TIME_PATTERNS.get(time, "").join(parts)
    for key, (_, pattern) in BARS.items():
        found = found.replace(key, pattern)
    return found


def _hint(shape: _Shape) -> str:
    """Return the longest text of a line, which all lines of its form contain."""
    return max((part for text in shape.texts for part in re.split("[\0-\2]", text)), key=len)


def _expected(row: dict[str, Any]) -> Iterator[str]:
    """Yield what an example's event is expected to have, as TOML."""
    for key, column in EXPECTED.items():
        if (value := row[column]) is not None:
            shown = value.isoformat() if isinstance(value, datetime) else value
            yield f'{key} = "{shown}"' if isinstance(value, str) else f"{key} = {shown}"


def _literal(text: str) -> str:
    """Return a text as a TOML string in which a backslash is one."""
    quotes = "'" if "'" not in text and "\n" not in text else "'''"
    return f"{quotes}{text.replace(quotes, '')}{quotes}"
