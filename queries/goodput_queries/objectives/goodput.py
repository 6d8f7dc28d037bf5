"""Goodput objectives of a site: which share of GPU time is to be useful, over how many days."""

from collections.abc import Sequence

import msgspec

from goodput_queries.errors import GoodputError

WINDOW_MAX_DAYS = 90
NAME_MAX_CHARS = 80
DAY_MS = 86_400_000


class Objective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An objective: of a team (of its allocated time), a cluster or the fleet (of the capacity).

    target: the least goodput, as a ratio. name: unset, that of the team or cluster.
    """

    target: float
    team: str | None = None
    cluster: str | None = None
    window_days: int = 30
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be attained, or needs no effort."""
        if not 0 < self.target < 1:
            raise GoodputError(
                f"'objectives.target' is {self.target!r}, expected a ratio between 0 and 1, "
                "such as 0.6."
            )
        if not 1 <= self.window_days <= WINDOW_MAX_DAYS:
            raise GoodputError(
                f"'objectives.window_days' is {self.window_days!r}, expected 1 to "
                f"{WINDOW_MAX_DAYS} days."
            )
        for key in ("team", "cluster", "name"):
            text = getattr(self, key)
            if text is not None and not 0 < len(text) <= NAME_MAX_CHARS:
                raise GoodputError(
                    f"'objectives.{key}' has {len(text)} characters, expected 1 to "
                    f"{NAME_MAX_CHARS}."
                )

    @property
    def title(self) -> str:
        """Return its name, else what it is of."""
        return self.name or ", ".join(filter(None, (self.team, self.cluster))) or "fleet"


def refuse_equal_names(objectives: Sequence[Objective]) -> None:
    """Raise GoodputError where two objectives have one name, by which their findings are known."""
    titles = [objective.title for objective in objectives]
    for title in titles:
        if titles.count(title) > 1:
            raise GoodputError(
                f"two objectives are named {title!r}; give one of them another 'name'."
            )


def as_variable(objectives: Sequence[Objective]) -> str:
    """Return them as the JSON text that `marts.goodput_objectives` reads."""
    rows = [
        {
            "name": objective.title,
            "team": objective.team,
            "cluster": objective.cluster,
            "target_ratio": objective.target,
            "window_ms": objective.window_days * DAY_MS,
        }
        for objective in objectives
    ]
    return msgspec.json.encode(rows).decode()
