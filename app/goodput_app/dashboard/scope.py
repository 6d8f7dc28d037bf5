"""What a page shows: the type that pages, panels and the bar on top of them share."""

from dataclasses import dataclass
from datetime import datetime

from goodput_app.page_links import filters_of
from goodput_queries.scope import Scope


@dataclass(frozen=True)
class View:
    """What a page shows: its scope, and the window as people read it (naive UTC)."""

    scope: Scope
    start: datetime
    end: datetime
    now: datetime
    as_of: datetime
    mode: str
    problem: str | None = None

    @property
    def window(self) -> tuple[datetime, datetime]:
        """Return start and end."""
        return self.start, self.end

    @property
    def filters(self) -> dict[str, str]:
        """Return the filters that are set, by parameter."""
        return filters_of(self.scope)
