"""The scope of a query: a time window and a part of the fleet; its instants as datetimes."""

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from goodput_queries.errors import QueryError


@dataclass(frozen=True)
class Scope:
    """A window `[from_ms, to_ms)` in epoch milliseconds (UTC) and filters; None does not restrict.

    The marts read it through DuckDB variables named `scope_<field>`, so that the same view answers
    for the fleet, a team or one GPU.
    teams: whose rows the reader may see; an empty tuple: none. `team` chooses among them and
    widens nothing. Such a scope reads only what `storage.row_access` allows.
    """

    from_ms: int | None = None
    to_ms: int | None = None
    cluster: str | None = None
    node: str | None = None
    gpu_uuid: str | None = None
    gpu_model: str | None = None
    team: str | None = None
    user: str | None = None
    run: str | None = None
    partition: str | None = None
    bucket_ms: int | None = None
    teams: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.teams is not None:  # alike for the same teams, which are a list in JSON
            object.__setattr__(self, "teams", tuple(sorted(set(self.teams))))
        if self.from_ms is not None and self.to_ms is not None and self.from_ms > self.to_ms:
            raise QueryError("the window ends before it begins; give --from before --to.")

    def variables(self) -> dict[str, Any]:
        """Return the DuckDB variables of this scope, by name."""
        return {f"scope_{name}": value for name, value in asdict(self).items()}

    @staticmethod
    def names() -> list[str]:
        """Return the names of all scope variables."""
        return [f"scope_{field.name}" for field in fields(Scope)]


EVERYTHING = Scope()


def utc_at(at_ms: float) -> datetime:
    """Return an instant in epoch milliseconds as naive UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).replace(tzinfo=None)


def epoch_ms(at: datetime) -> int:
    """Return an instant (naive: UTC) in epoch milliseconds."""
    return round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)


def iso(at_ms: int) -> str:
    """Return an instant in epoch milliseconds as ISO 8601 has it, to the second."""
    return f"{utc_at(at_ms):%Y-%m-%dT%H:%M:%SZ}"
