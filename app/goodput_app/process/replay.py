"""The replay that this process serves, if it serves one."""

from goodput_ingest.replay.feed import ReplayFeed

_replay: ReplayFeed | None = None


def use_replay(feed: ReplayFeed | None) -> None:
    """Make `feed` the replay that pages show and control; None: evidence is not replayed."""
    global _replay  # noqa: PLW0603 -- one replay a process is the point of this module
    _replay = feed


def current_replay() -> ReplayFeed | None:
    """Return the replay that this process serves; None: it serves none."""
    return _replay
