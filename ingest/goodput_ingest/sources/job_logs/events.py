"""Job events in log lines, before run and host are known, and the protocol of log formats."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

PLACED = "the next save"  # `at` in extra: steps of lines without a time end there
READ_OUT = "when the log was read out"  # `at` in extra: of a failure before the first time in it


@dataclass(frozen=True)
class Event:
    """A job event (raw.job_events) in a log line.

    at: the end of what has a duration, naive UTC; None: the log does not say when, so that it
    cannot be placed and is only counted.
    samples, mfu_ratio: of a step; gpu_tokens, gpu_flops: of one GPU in it.
    """

    event: str
    at: datetime | None
    step: int | None = None
    dur_s: float | None = None
    phase: str | None = None
    kind: str | None = None
    msg: str | None = None
    tokens: float | None = None
    samples: float | None = None
    gpu_tokens: float | None = None
    gpu_flops: float | None = None
    mfu_ratio: float | None = None
    loss: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class LogFormat(Protocol):
    """The log format of a framework: parses line by line and keeps state between lines.

    hints: substrings; every line that the format parses contains one of them.
    reports_durability: whether the format can say that a checkpoint is durable.
    """

    @property
    def name(self) -> str:
        """Return the name of the format."""

    @property
    def hints(self) -> tuple[str, ...]:
        """Return the substrings."""

    @property
    def reports_durability(self) -> bool:
        """Say whether a log of this format says that a checkpoint is durable."""

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the events in a line; None: it has not the form of this format.

        Raises FieldError for a broken line.
        """
