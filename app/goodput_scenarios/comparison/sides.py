"""One side of a comparison, a run or a time range, and what the marts know of it."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from goodput_queries.scope import Scope

Reader = Callable[[str, Scope], pl.DataFrame]  # of one select in a scope
STEPS_MAX = 5_000_000  # beyond, a time range holds more than a comparison needs
LEDGER = """select category, any_value(label) as label, any_value(colour) as colour,
        any_value(kind) as kind, sum(gpu_ms)::bigint as gpu_ms, sum(cost)::double as cost
    from marts.run_categories group by category order by category"""
STEPS = f"""select run_key, step, end_ms, step_ms, tokens, samples from marts.judged_steps
    order by run_key, end_ms, step limit {STEPS_MAX}"""


@dataclass(frozen=True)
class Side:
    """A run or a time range, with the name that reports give it."""

    name: str
    scope: Scope


@dataclass(frozen=True)
class Measured:
    """What is known of a side.

    runs: marts.workload_runs; steps: marts.judged_steps in the order of time; attributes:
    marts.run_attributes; ledger: allocated GPU time of all runs by category; energy:
    marts.energy_by_run; changes: run_key and sentence of marts.step_changes.
    """

    side: Side
    runs: pl.DataFrame
    steps: pl.DataFrame
    attributes: pl.DataFrame
    ledger: pl.DataFrame
    energy: pl.DataFrame
    changes: pl.DataFrame

    @property
    def held_ms(self) -> int:
        """Allocated GPU time."""
        return int(self.ledger["gpu_ms"].sum())


def measured(read: Reader, side: Side) -> Measured:
    """Return what the marts know of a side."""
    return Measured(
        side,
        *(
            read(sql, side.scope)
            for sql in (
                "select * from marts.workload_runs order by start_at, run_key",
                STEPS,
                "select * from marts.run_attributes order by run_key, place",
                LEDGER,
                "select * from marts.energy_by_run order by run_key",
                "select run_key, sentence from marts.step_changes order by run_key, since_ms",
            )
        ),
    )
