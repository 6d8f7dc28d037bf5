"""The statements of the past: an index in their folder, and a page that links them.

The index is a file of JSON lines beside the statements, a line a day, and not a table of the
database: what was mailed stays mailed when the database is rebuilt or read-only, and a
folder that is copied away brings its index along.

    folder/statements.jsonl            the index
    folder/index.html                  the same for people, newest first
    folder/statement-2026-11-19.pdf    what it links
"""

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Self
from urllib.parse import quote

import jinja2
import msgspec

from goodput_billing.render import atomic, templates
from goodput_billing.render.wording import hours, money
from goodput_billing.statement.amounts.currency import DEFAULT, sign
from goodput_queries.errors import StoreError, stated
from goodput_queries.storage.private import for_others

INDEX = "statements.jsonl"
PAGE = "index.html"
TEMPLATE = "archive.html.j2"
INDEX_MAX_BYTES = 64 * 1024 * 1024  # a line a day of a few hundred bytes: centuries


@dataclass(frozen=True)
class Delivery:
    """How one version of a statement fared on one channel: the last attempt, and how many.

    channel: `files`, `mail` or `webhook`. version: see PastStatement. tried_at, delivered_at: UTC;
    delivered_at is null until all of it arrived; attempts is 0 before the first. recipients: who
    has it, where the channel has any. error: one sentence of the last attempt, null where that was
    good.
    """

    channel: str
    version: str
    tried_at: datetime
    attempts: int
    delivered_at: datetime | None = None
    recipients: tuple[str, ...] = ()
    error: str | None = None

    @property
    def words(self) -> str:
        """Return the channel, and what is wrong with it where it has not got all."""
        if self.delivered_at is not None:
            return self.channel
        return f"{self.channel} failed: {self.error}" if self.error else f"{self.channel} not yet"


@dataclass(frozen=True)
class PastStatement:
    """A day as it was last delivered.

    is_closed: false for a provisional one, whose figures may still change. corrections: how many
    a closed day has had. version: changes with what is billed, and with nothing else. status: the
    sentence of the statement on what its figures rest. accounts_cost: of `total_cost` what accounts
    pay, the rest is nobody's; both in `currency`. Times of GPUs in milliseconds; unpriced_ms has no
    price and is in no total. files: bare names, in this folder. deliveries: of each channel how
    this version fared, and what it took last; in order of time.
    """

    date: date
    zone: str
    is_closed: bool
    corrections: int
    version: str
    status: str
    made_at: datetime
    total_cost: Decimal
    accounts_cost: Decimal
    capacity_ms: int
    held_ms: int
    productive_ms: int
    unpriced_ms: int = 0
    currency: str = DEFAULT
    definition_version: int = 1  # entries of before there were two do not say
    files: tuple[str, ...] = ()
    deliveries: tuple[Delivery, ...] = ()

    @property
    def state(self) -> str:
        """Return whether it is final, in a few words."""
        if not self.is_closed:
            return "provisional"
        words = {0: "closed", 1: "closed, 1 correction"}
        return words.get(self.corrections, f"closed, {self.corrections} corrections")

    @property
    def latest(self) -> list[Delivery]:
        """Return how the version that stands here fared, a row a channel."""
        return [one for one in self.deliveries if one.version == self.version]

    def taken(self, channel: str) -> Delivery | None:
        """Return what a channel took last of this day, of whichever version."""
        for one in reversed(self.deliveries):
            if one.channel == channel and one.delivered_at is not None:
                return one
        return None

    def tried(self, channel: str) -> Delivery | None:
        """Return how this version fared on a channel; None where it was not tried."""
        return next((one for one in self.latest if one.channel == channel), None)

    def with_delivery(self, delivery: Delivery) -> Self:
        """Return the entry with how its version fared now on a channel."""
        kept = [
            one
            for one in self.deliveries
            if one.channel != delivery.channel
            or (one is self.taken(one.channel) and one.version != delivery.version)
        ]
        return replace(self, deliveries=(*kept, delivery))


def past_statements(folder: Path) -> list[PastStatement]:
    """Return the statements in the index of a folder, newest first; none where there is no index.

    Raises StoreError where the index cannot be read or is damaged: who guessed would mail twice.
    """
    path = folder / INDEX
    try:
        with path.open("rb") as stream:
            content = stream.read(INDEX_MAX_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path}: the index cannot be read ({error.strerror}).") from error
    if len(content) > INDEX_MAX_BYTES:
        raise StoreError(
            f"{path}: this is no index of statements: over {INDEX_MAX_BYTES >> 20} MiB."
        )
    found = {}
    for number, line in enumerate(content.splitlines(), 1):
        one = _entry(path, number, line)
        found[one.date] = one
    return [found[day] for day in sorted(found, reverse=True)]


def keep(folder: Path, statement: PastStatement) -> None:
    """Put a statement in the place of its day's earlier entry, and render the page again.

    One process at a time may do so. Raises StoreError where the folder cannot be written.
    """
    others = [one for one in past_statements(folder) if one.date != statement.date]
    entries = sorted([*others, statement], key=lambda one: one.date)
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in entries)
    with stated(StoreError, f"{folder}: the index cannot be written"):
        with for_others():
            folder.mkdir(parents=True, exist_ok=True)
        atomic.replace(folder / INDEX, lines)
        atomic.replace(folder / PAGE, page(entries[::-1]))


def form_of(name: str) -> str:
    """Return the format of a statement's file: csv, parquet, html, pdf, focus."""
    return "focus" if name.startswith("focus-") else name.rpartition(".")[2]


def page(statements: list[PastStatement]) -> bytes:
    """Return the page that links statements, in this order."""
    return _template().render(statements=statements).encode()


def _entry(path: Path, number: int, line: bytes) -> PastStatement:
    try:
        entry = msgspec.json.decode(line, type=PastStatement)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(
            f"{path}: line {number} is not an entry of the index ({error}). Restore the file from "
            "a copy; without it statements that were mailed are mailed again."
        ) from error
    for name in entry.files:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise StoreError(
                f"{path}: line {number} names the file {name!r}, which is not in this folder. "
                "Restore the file from a copy."
            )
    return entry


@cache
def _template() -> jinja2.Template:
    environment = templates.environment("goodput_billing.delivery")
    environment.filters |= {
        "money": money, "hours": hours, "link": quote, "sign": sign, "form": form_of,
    }  # fmt: skip
    return environment.get_template(TEMPLATE)
