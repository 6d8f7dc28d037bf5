"""Serving objectives of a site: how fast requests to a model are to be answered.

The ledger depends on them, so that a build keeps them in `state.serving_objectives`.
"""

from collections.abc import Sequence

import duckdb
import msgspec

from goodput_queries.errors import GoodputError

MODEL_MAX_CHARS = 200
LIMITS = ("ttft_s", "inter_token_s", "e2e_s")
_COLUMNS = "place, model, ttft_s, inter_token_s, e2e_s, target"
_MODELS = "'serving.objectives.model'"


class ServingObjective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits that a request to a model must keep to be within the objective.

    model: a pattern with * and ?; the first objective whose pattern matches holds.
    ttft_s: time to the first token. inter_token_s: mean time between two tokens. e2e_s: until the
    last token. target: the share of requests that is wanted within all of these.
    """

    model: str = "*"
    ttft_s: float | None = None
    inter_token_s: float | None = None
    e2e_s: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        """Refuse an objective that asks nothing, or what no request can keep."""
        if not 0 < len(self.model) <= MODEL_MAX_CHARS:
            raise GoodputError(
                f"{_MODELS} has {len(self.model)} characters, expected 1 to {MODEL_MAX_CHARS}."
            )
        limits = {key: getattr(self, key) for key in LIMITS if getattr(self, key) is not None}
        if not limits:
            raise GoodputError(
                "a [[serving.objectives]] table needs 'ttft_s', 'inter_token_s' or 'e2e_s'."
            )
        for key, limit in limits.items():
            if not 0 < limit < float("inf"):
                raise GoodputError(
                    f"'serving.objectives.{key}' is {limit!r}, expected seconds above 0."
                )
        if self.target is not None and not 0 < self.target <= 1:
            raise GoodputError(
                f"'serving.objectives.target' is {self.target!r}, expected a ratio above 0, at "
                "most 1, such as 0.99."
            )


def refuse_equal_models(objectives: Sequence[ServingObjective]) -> None:
    """Raise GoodputError where two objectives have one pattern: the second would never hold."""
    patterns = [objective.model for objective in objectives]
    for pattern in patterns:
        if patterns.count(pattern) > 1:
            raise GoodputError(
                f"two [[serving.objectives]] are of model {pattern!r}; the first alone would hold."
            )


def are_kept(
    cursor: duckdb.DuckDBPyConnection, objectives: Sequence[ServingObjective] | None
) -> bool:
    """Return whether the database has these objectives; None: those that it has."""
    select = f"select {_COLUMNS} from state.serving_objectives order by place"
    return objectives is None or cursor.execute(select).fetchall() == _rows(objectives)


def keep(cursor: duckdb.DuckDBPyConnection, objectives: Sequence[ServingObjective]) -> None:
    """Keep these objectives in the database, in place of those that it has."""
    cursor.execute("delete from state.serving_objectives")
    if objectives:
        cursor.executemany(
            f"insert into state.serving_objectives ({_COLUMNS}) values ($1, $2, $3, $4, $5, $6)",
            _rows(objectives),
        )


def _rows(objectives: Sequence[ServingObjective]) -> list[tuple[object, ...]]:
    return [
        (place, one.model, one.ttft_s, one.inter_token_s, one.e2e_s, one.target)
        for place, one in enumerate(objectives)
    ]
