"""Parses JSON lines: the record on a line, its fields and its times.

Anything that violates its format raises FieldError, whose text is the reason of the reject.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from goodput_ingest.formats.files import LINE_MAX_BYTES, Part
from goodput_queries.evidence.batch import Reject

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
HEAD_LINES = 50
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# what a collector writes before each line: `kubectl logs --timestamps`, container runtimes (CRI)
STAMP = (
    r"\[?(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d))\]?"
    r"(?: (?:stdout|stderr) [FP])?[ \t]"
)
STAMPED = re.compile(STAMP)
STAMPS = re.compile(rb"^" + STAMP.encode(), re.MULTILINE)
# `srun --label` writes "3: " before each line
LABEL = rf"^(?:\s*(?:{STAMP}\s*)?(?:\d+:\s*)?(?=\{{)|{STAMP})"
TEXTS_OF_WRAPPERS = ("log", "message", "line", "textPayload", "MESSAGE")
TIMES_OF_WRAPPERS = ("time", "timestamp", "@timestamp", "date")
WRAPPED = re.compile(
    rf'(?:{STAMP})?(?=\{{[^\n]{{0,4000}}?"(?:{"|".join(TEXTS_OF_WRAPPERS)})": ?")'
    rf'(?=\{{[^\n]*?"(?:{"|".join((*TIMES_OF_WRAPPERS, "__REALTIME_TIMESTAMP"))}|podName)": ?"'
    r'|\{[^\n]*?"date": ?1[5-9]\d{8}\b)'
)
# of an object; not of a dictionary that Python prints
BEGINNING = re.compile(rb'\{\s*(?:"(?!log":")|\}|$)')
LABEL_OF_TEXT, LABEL_OF_BYTES = re.compile(LABEL), re.compile(LABEL.encode())
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- moments are stored naive, in UTC
EPOCH_S_MAX = 7_258_118_400  # 2200-01-01: more is milliseconds or nonsense
LATEST = EPOCH + timedelta(seconds=EPOCH_S_MAX)
WITH_OFFSET = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d)"
)


class FieldError(ValueError):
    """A line or a field violates its format; the text says which and why."""


def objects(head: bytes) -> list[bytes]:
    """Return the first lines that begin an object, less labels."""
    return [line for line in _unlabelled(head) if BEGINNING.match(line)]


def are_most(head: bytes) -> bool:
    """Say whether at least half of the first lines begin an object: a document may show some."""
    lines = _unlabelled(head)
    return bool(lines) and 2 * sum(map(bool, map(BEGINNING.match, lines))) >= len(lines)


def _unlabelled(head: bytes) -> list[bytes]:
    lines = [line for line in head.splitlines() if line.strip()]
    return [LABEL_OF_BYTES.sub(b"", line) for line in lines[:HEAD_LINES]]


def split_stamp(text: str) -> tuple[datetime | None, str]:
    """Return the time that a collector wrote before a line, naive UTC, and the line."""
    text = unwrapped(text)
    if (found := STAMPED.match(text)) is None:
        return None, text
    try:
        return moment({"ts": found[1]}, "ts"), text[found.end() :]
    except FieldError:
        return None, text


def unwrapped(line: str) -> str:
    """Return a program's line that a collector wrapped in JSON, behind its time and pod.

    Such are Docker's driver json-file, `stern -o json`, `logcli -o jsonl` of Loki, the journal as
    JSON, and what Fluent Bit, Vector or Google's logging write.
    """
    if (before := WRAPPED.match(line)) is None:
        return line
    try:
        said = json.loads(line[before.end() :])
    except (ValueError, RecursionError):
        return line
    match said:
        case {"message": str(text), "podName": str(pod), "containerName": str(container)}:
            stamp = "" if STAMPED.match(text) else before[0]
            found = f"{stamp}[pod/{pod}/{container}] {text}"
        case {"line": str(text), "timestamp": str(at), "labels": {"pod": str(pod)}}:
            found = f'{at} {{pod="{pod}"}} {text}'
        case {"line": str(text), "timestamp": str(at)}:
            found = f"{at} {{}} {text}"
        case {"MESSAGE": str(text), "__REALTIME_TIMESTAMP": str(us)} if us.isdecimal():
            at_s = EPOCH + timedelta(microseconds=int(us[:17]))
            found = f"{at_s.isoformat()}Z {text}"
        case dict():
            found = _of_collector(said)
        case _:
            return line
    if not found:
        return line
    return found.rstrip("\n").replace("\n", " ")


def _of_collector(said: dict[str, Any]) -> str:
    """Return time, pod and text of a line that a collector wrapped; '' where it has not both."""
    if isinstance(at_s := said.get("date"), int | float) and 0 <= at_s < EPOCH_S_MAX:
        stamp = EPOCH + timedelta(microseconds=round(at_s * 1e6))
        said["date"] = f"{stamp.isoformat()}Z"  # of Fluent Bit
    text = next((said[name] for name in TEXTS_OF_WRAPPERS if isinstance(said.get(name), str)), None)
    at = next((said[name] for name in TIMES_OF_WRAPPERS if isinstance(said.get(name), str)), "")
    if text is None or STAMPED.match(f"{at} ") is None:
        return ""
    match said:
        case {"kubernetes": {"pod_name": str(pod), "container_name": str(container)}}:
            return f"{at} [pod/{pod}/{container}] {text}"
    return f"{at} {text}"


def without_stamps(head: bytes) -> bytes:
    """Return lines without the time that a collector wrote before each."""
    return STAMPS.sub(b"", head)


def is_blank(line: str) -> bool:
    """Say whether nothing stands on a line, behind a collector's time."""
    stamp = STAMPED.match(line)
    return not line[stamp.end() if stamp else 0 :].strip()


def each_line(part: Part, take: Callable[[str], object], before: str = "") -> list[Reject]:
    """Let `take` have each line that is not blank; return the rejects of the part.

    They are the lines for which it raises FieldError, and why the reading broke off. before: what
    a reason begins with
    """
    rejects: list[Reject] = []
    for number, line in enumerate(part.lines, part.first_line):
        try:
            if not is_blank(line):
                take(line)
        except FieldError as error:
            rejects.append(Reject(number, f"{before}{error}", printable(line, 500)))
    return rejects + part.cut


def unlabelled(line: str) -> str:
    """Return a line that is an object, without what collector and launcher wrote before it."""
    return line if line[:1] == "{" else LABEL_OF_TEXT.sub("", line)


def record(line: str) -> dict[str, Any]:
    """Return the object on a line; NaN and Infinity, which Python writes, are read."""
    line = unlabelled(line)
    try:
        value = json.loads(line)
    except RecursionError:
        raise FieldError("the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        if (
            len(line) >= LINE_MAX_BYTES
            or len(line.encode("utf-8", "surrogatepass")) >= LINE_MAX_BYTES
        ):
            raise FieldError(f"the line is longer than {LINE_MAX_BYTES >> 20} MiB") from None
        raise FieldError(
            f"the line is cut or not JSON: {error.msg} (character {error.pos + 1})"
        ) from None
    except ValueError as error:
        raise FieldError(f"the line is not JSON that can be read: {error}") from None
    if not isinstance(value, dict):
        raise FieldError(f"the line is {kind(value)}, expected an object")
    return value


def kind(value: object) -> str:
    """Return the name of the type of a JSON value for messages."""
    if value is None:
        return "null"
    names = {bool: "a truth value", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def printable(text: str, max_chars: int) -> str:
    """Return text that is safe to store and print: control characters replaced, capped."""
    text = text[:max_chars]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return CONTROL.sub("\ufffd", text)


def dumped(value: object) -> str:
    """Return a value as JSON that a database takes: half a surrogate pair as a question mark."""
    found = json.dumps(value)
    if r"\ud" not in found:
        return found
    whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return json.dumps(json.loads(whole))


def text(fields: dict[str, Any], name: str, max_chars: int = 200) -> str | None:
    """Return a text, capped; None where it is absent or null."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise FieldError(f"{name} is {kind(value)}, expected text")
    return printable(value, max_chars)


def number(
    fields: dict[str, Any], name: str, low: float = -math.inf, high: float = math.inf
) -> float | None:
    """Return a finite number in [low, high]; None where it is absent, null or NaN."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"{name} is {kind(value)}, expected a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if math.isnan(result):
        return None
    if math.isinf(result) or not low <= result <= high:
        raise FieldError(f"{name} is out of range")
    return result


def whole(
    fields: dict[str, Any], name: str, low: int = INTEGER_MIN, high: int = INTEGER_MAX
) -> int | None:
    """Return a whole number in [low, high]; None where it is absent or null."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"{name} is {kind(value)}, expected a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise FieldError(f"{name} is not a whole number")
    if not low <= value <= high:
        raise FieldError(f"{name} is out of range")
    return int(value)


def in_utc(clock: datetime) -> datetime:
    """Return a time that has an offset as naive UTC, from 1970 to 2199; else raise FieldError.

    Sums of it with any duration in a log then stay within the calendar.
    """
    try:
        found = clock.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # years 1 and 9999 end outside of it in other zones
        found = None
    if found is None or not EPOCH <= found < LATEST:
        raise FieldError("is not a time between 1970 and 2199")
    return found


def moment(fields: dict[str, Any], name: str) -> datetime:
    """Return a moment, naive UTC, from epoch seconds or RFC 3339 with an offset; nothing else."""
    value = fields.get(name)
    if value is None:
        raise FieldError(f"{name} is missing")
    if isinstance(value, str):
        if not WITH_OFFSET.fullmatch(value):
            raise FieldError(f"{name} is a text that is not RFC 3339 with an offset")
        try:
            return in_utc(datetime.fromisoformat(value.upper().replace(",", ".")))
        except FieldError as error:
            raise FieldError(f"{name} {error}") from None
        except ValueError:
            raise FieldError(f"{name} is not a valid date") from None
    seconds = number(fields, name)
    if seconds is None:
        raise FieldError(f"{name} is NaN")
    if not 0 <= seconds < EPOCH_S_MAX:
        raise FieldError(f"{name} is out of range for seconds since 1970")
    return EPOCH + timedelta(microseconds=round(seconds * 1e6))
