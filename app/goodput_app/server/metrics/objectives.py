"""Objectives for `/metrics`: how they are met and how fast their error budgets burn."""

from goodput_app.server.metrics.families import Samples
from goodput_queries.database import Store

TIMEOUT_S = 10.0
VALUES = {
    "goodput_objective_target_ratio": "target_ratio",
    "goodput_objective_ratio": "attained_ratio",
    "goodput_objective_budget_spent_ratio": "budget_spent_ratio",
    "goodput_objective_burning": "is_burning",
}
BURN_WINDOWS = ("1h", "6h", "24h", "30d")


def add_objectives(store: Store, samples: Samples) -> None:
    """Add what `marts.goodput_objectives` says of each objective."""
    rows = store.read(
        "select * from marts.goodput_objectives order by name", timeout_s=TIMEOUT_S
    ).to_dicts()
    labelled = [
        ({"objective": row["name"], "cluster": row["cluster"], "team": row["team"]}, row)
        for row in rows
    ]
    for name, column in VALUES.items():
        samples.add(name, [(labels, row[column]) for labels, row in labelled])
    samples.add(
        "goodput_objective_burn_rate",
        [
            (labels | {"window": window}, row[f"burn_rate_{window}"])
            for labels, row in labelled
            for window in BURN_WINDOWS
        ],
    )
