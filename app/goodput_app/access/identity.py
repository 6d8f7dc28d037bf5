"""A person who uses the dashboard: their name, their roles, and the teams whose rows they see."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a person may do besides reading; everybody who is signed in is at least a viewer."""

    VIEWER = "viewer"
    OPERATOR = "operator"  # states of findings, retiring sources, notes and disputes
    FINANCE = "finance"  # prices, tariffs, budgets, statements, credits
    ADMIN = "admin"  # everything, the audit log too


class Action(StrEnum):
    """What only some roles may do."""

    SET_FINDING_STATE = "set the state of a finding"
    NOTE_RUN = "write a note on a run"
    RETIRE_SOURCE = "retire a source"
    EDIT_PRICES = "edit prices"
    DOWNLOAD_STATEMENT = "download a statement"
    REPLAY_RECORDING = "replay a recording"
    TEST_NOTIFICATION = "send a test notification"
    WRITE_NOTE = "write a note or dispute"
    GIVE_CREDIT = "give a credit or resolve a dispute"
    READ_AUDIT_LOG = "read the audit log"


ALLOWED = {
    Role.VIEWER: frozenset[Action](),
    Role.OPERATOR: frozenset(
        {
            Action.SET_FINDING_STATE,
            Action.RETIRE_SOURCE,
            Action.REPLAY_RECORDING,
            Action.TEST_NOTIFICATION,
            Action.WRITE_NOTE,
            Action.NOTE_RUN,
        }
    ),
    Role.FINANCE: frozenset(
        {Action.EDIT_PRICES, Action.DOWNLOAD_STATEMENT, Action.WRITE_NOTE, Action.GIVE_CREDIT}
    ),
    Role.ADMIN: frozenset(Action),
}


@dataclass(frozen=True)
class Identity:
    """A person as the sign-in names them.

    teams: whose rows they see; None: those of every team, and of the whole fleet.
    """

    name: str
    roles: frozenset[Role] = frozenset({Role.VIEWER})
    teams: frozenset[str] | None = None

    def may(self, action: Action) -> bool:
        """Return whether one of their roles allows an action."""
        return any(action in ALLOWED[role] for role in self.roles)


LOCAL = Identity(name="local", roles=frozenset({Role.ADMIN}))
"""Whoever reaches a server without a sign-in, which listens on the loopback only."""
