"""What the tools of programs take; their JSON schema is made from these classes."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from goodput_app.server.agents.answers import ROWS_MAX
from goodput_app.server.api.document import parameters
from goodput_queries import ledger as ledgers

ROWS: Final = 30
NAME_MAX_CHARS: Final = 500
FILTERS_MAX: Final = 8
SCOPE: Final = parameters()

Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX_CHARS)]


def _about(text: str) -> Meta:
    return Meta(min_length=1, max_length=NAME_MAX_CHARS, description=text)


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A misspelt argument is refused: it would widen the rows."""


class InRange(Arguments, frozen=True, kw_only=True):
    """A time range, and the largest number of rows."""

    from_: Annotated[str, _about(SCOPE["from"])] | None = msgspec.field(name="from", default=None)
    to: Annotated[str, _about(SCOPE["to"])] | None = None
    cluster: Annotated[str, _about(SCOPE["cluster"])] | None = None
    limit: Annotated[int, Meta(ge=1, le=ROWS_MAX, description="Largest number of rows.")] = ROWS


class InScope(InRange, frozen=True, kw_only=True):
    """A time range and filters."""

    team: Annotated[str, _about(SCOPE["team"])] | None = None
    node: Annotated[str, _about("Only this node.")] | None = None
    run: Annotated[str, _about("Only this run, by its key, id or job name.")] | None = None


class Ledger(InScope, frozen=True, kw_only=True):
    """What the ledger is grouped by."""

    by: Annotated[str, _about(f"Keys with commas between them, of: {', '.join(ledgers.KEYS)}.")] = (
        "category"
    )


class Findings(InScope, frozen=True, kw_only=True):
    """Which findings."""

    severity: Annotated[
        Literal["page", "ticket", "note"], Meta(description="Only this severity and above.")
    ] = "ticket"
    state: Literal["open", "acknowledged", "dismissed", "closed"] | None = None


class OneRun(InRange, frozen=True, kw_only=True):
    """Which run."""

    run: Annotated[str, _about("The run, by its key, id or job name.")]


class OneNode(InRange, frozen=True, kw_only=True):
    """Which node."""

    node: Annotated[str, _about("The name of the node.")]


class Mart(InScope, frozen=True, kw_only=True):
    """Which mart, and of it which rows and columns."""

    mart: Annotated[
        str, _about("Such as marts.throttle_episodes; a word that names none finds marts about it.")
    ]
    where: Annotated[
        dict[Name, bool | int | float | Name],
        Meta(max_length=FILTERS_MAX, description='Values of columns, such as {"rank": 3}.'),
    ] = {}
    columns: Annotated[list[Name], Meta(description="Only these columns; without: all.")] = []


class Term(Arguments, frozen=True, kw_only=True):
    """Which term."""

    term: Annotated[str, _about("A term, measure, category, or a word of its definition.")]


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of the arguments of a tool."""
    _, parts = msgspec.json.schema_components([arguments])
    return {name: part for name, part in parts[arguments.__name__].items() if name != "title"}
