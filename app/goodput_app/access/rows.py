"""Whose rows a reader sees: the teams of their identity, as a part of every scope."""

from dataclasses import replace

from goodput_app.access import current
from goodput_queries.errors import NotPermittedError
from goodput_queries.scope import Scope

Teams = tuple[str, ...] | None


def teams() -> Teams:
    """Return the teams whose rows the reader sees, sorted; None: those of all."""
    found = current.current_identity().teams
    return None if found is None else tuple(sorted(found))


def limited(scope: Scope) -> Scope:
    """Return the scope with the teams of the reader; teams that it has already are never widened.

    What is evaluated later, or in another thread, keeps the teams of who asked for it.
    """
    own = teams()
    if own is None:
        return scope
    kept = own if scope.teams is None else set(own) & set(scope.teams)
    return replace(scope, teams=tuple(kept))


def sees_all(scope: Scope) -> bool:
    """Return whether the reader sees the rows of all teams in a scope."""
    return limited(scope).teams is None


def require_all_teams(what: str) -> None:
    """Raise NotPermittedError for a reader of some teams."""
    if teams() is not None:
        raise NotPermittedError(
            f"You see the rows of your teams only; {what} hold more than these."
        )
