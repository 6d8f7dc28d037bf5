"""Events of ml-goodput-measurement."""

from goodput_formats_extra.google_events.source import GoodputEvents

__all__ = ["GoodputEvents"]
