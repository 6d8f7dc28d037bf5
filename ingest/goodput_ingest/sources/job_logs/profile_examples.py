"""Checks a profile's examples: the events that their lines give are those that it says."""

from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.formats import of_profile
from goodput_ingest.sources.job_logs.profiles.profile import Example, Profile
from goodput_ingest.sources.job_logs.reader import LogReader
from goodput_queries.errors import IngestError

NAMES = {"at": "ts"}  # of an expected field -> column of job events


def check_examples(profile: Profile, origin: str) -> None:
    """Raise IngestError for the first example whose lines give other events than expected."""
    for number, example in enumerate(profile.example, 1):
        rows, rejects = read(profile, example)
        place = f"{origin}: example {number}"
        if rejects:
            raise IngestError(f"{place}: line {rejects[0].line} is rejected ({rejects[0].reason}).")
        if len(rows) != len(example.expected):
            given = ", ".join(row["event"] for row in rows) or "none"
            raise IngestError(
                f"{place}: its lines give {len(rows)} events ({given}), "
                f"expected {len(example.expected)}."
            )
        for position, differs in enumerate(map(_difference, rows, example.expected), 1):
            if differs:
                raise IngestError(f"{place}: event {position}: {differs}.")


def read(profile: Profile, example: Example) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the rows of job events and the rejects of an example's lines."""
    try:
        zone = None if example.timezone is None else ZoneInfo(example.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise IngestError(
            f"profile {profile.name}: there is no time zone {example.timezone!r}."
        ) from error
    reader = LogReader(profile.name, ReadOptions(zone=zone), (of_profile(profile),))
    data = example.text.strip("\n").encode() + b"\n"
    rows, rejects = [], []
    for some, others in reader.read(files.Part(1, data, "")):
        rows += some
        rejects += others
    return rows, rejects


def _difference(row: dict[str, Any], expected: dict[str, Any]) -> str:
    return "; ".join(_differences(row, expected))


def _differences(row: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    for name, value in expected.items():
        given = row.get(NAMES.get(name, name))
        is_number = isinstance(value, int | float) and isinstance(given, int | float)
        if is_number and abs(given - value) <= 1e-6 * max(1.0, abs(value)):
            continue
        if given != value:
            yield f"{name} is {given}, expected {value}"
