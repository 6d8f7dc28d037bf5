"""Whom the members of goodput.toml name: from a signed-in person to what they may see and do."""

from dataclasses import dataclass

from goodput_app.access.identity import Identity, Role
from goodput_app.access.settings import AccessSettings

NAME_MAX_CHARS = 80  # as in what they say of a finding
GROUPS_MAX = 1_000


@dataclass(frozen=True)
class Person:
    """Somebody who signed in: the name and the groups that the provider or the proxy gives.

    expires_at_s: when they have to sign in again, as Unix time; None: the proxy decides.
    """

    name: str
    groups: frozenset[str] = frozenset()
    expires_at_s: float | None = None


class RefusedError(Exception):
    """A request whose sign-in cannot be believed; its text is for the person."""


def person_of(name: str, groups: list[str], expires_at_s: float | None = None) -> Person:
    """Return a person whose name can be shown and stored; raises RefusedError for another name."""
    if not name.strip() or len(name) > NAME_MAX_CHARS or not name.isprintable():
        raise RefusedError(
            f"The sign-in gave no usable name: 1 to {NAME_MAX_CHARS} printable characters."
        )
    return Person(name.strip(), frozenset(groups[:GROUPS_MAX]), expires_at_s)


def identity_of(person: Person, access: AccessSettings) -> Identity | None:
    """Return roles and teams of a person, None for one whom nothing lets in.

    What all matching members allow adds up; one without teams gives all of them.
    """
    found = [
        member
        for member in access.members
        if member.person == person.name or member.group in person.groups
    ]
    if not found:
        if access.default_role is None:
            return None
        return Identity(person.name, frozenset({Role(access.default_role)}))
    roles = frozenset(Role(member.role) for member in found)
    teams = [member.teams for member in found if member.teams is not None]
    is_limited = len(teams) == len(found)
    return Identity(person.name, roles, frozenset().union(*teams) if is_limited else None)
