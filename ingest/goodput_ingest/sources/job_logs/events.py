"""What the lines of a log tell, before it is said whose log it is: job events and who read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
    from datetime import datetime

    from goodput_ingest.sources.job_logs.lines import Line
    from goodput_ingest.sources.job_logs.moments import Moments


@dataclass(frozen=True)
class Event:
    """A job event (raw.job_events) as a line tells it.

    at: the end of what has a duration, naive UTC; None: the log does not say when, so that it
    cannot be placed and is only counted.
    """

    event: str
    at: datetime | None
    step: int | None = None
    dur_s: float | None = None
    phase: str | None = None
    kind: str | None = None
    msg: str | None = None
    tokens: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Teller(Protocol):
    """A framework's way of telling, read line by line; it keeps what earlier lines said.

    marks: what makes a log recognisable as this framework's, in its first bytes.
    hints: texts, one of which every line has that the teller understands.
    reports_durability: whether the format can say that a checkpoint is durable.
    """

    name: ClassVar[str]
    marks: ClassVar[re.Pattern[bytes]]
    hints: ClassVar[tuple[str, ...]]
    reports_durability: ClassVar[bool]

    def take(self, line: Line, moments: Moments) -> Iterable[Event]:
        """Return what the line tells; raises FieldError where it is broken."""
