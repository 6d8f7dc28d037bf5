"""How notifications fare: each target with its last message, and messages that wait."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from goodput_messages import outbox
from goodput_messages.message import headline
from goodput_messages.targets import AnyTarget
from goodput_queries.catalog.rules import SEVERITIES
from goodput_queries.database import Store

AT = pl.Datetime("us")
RECEIVERS: dict[str, Any] = {
    "target": pl.String, "to": pl.String, "wants": pl.String, "sent_at": AT, "sent": pl.Int64,
    "waiting": pl.Int64, "given_up": pl.Int64, "failed_at": AT, "error": pl.String,
}  # fmt: skip
WAITING: dict[str, Any] = {
    "target": pl.String, "event": pl.String, "recipient": pl.String, "message": pl.String,
    "created_at": pl.Datetime("ms"), "attempts": pl.Int64, "next_attempt_at": pl.Datetime("ms"),
    "error": pl.String,
}  # fmt: skip
WAITING_MAX = 200
_SUMS = """select target, max(sent_at) as sent_at, count(sent_at) as sent,
        count(*) filter (sent_at is null and given_up_at is null) as waiting,
        count(given_up_at) as given_up,
        arg_max(error, created_at) filter (sent_at is null) as error
    from state.notifications group by target"""
_FAILURES = """select origin as target, failing_since_at as failed_at, error
    from marts.live_sources where source = 'notify' and failing_since_at is not null"""


def receivers(store: Store, targets: Sequence[AnyTarget]) -> pl.DataFrame:
    """Return a row for each target of the settings: RECEIVERS, of the last 30 days.

    sent: messages that were taken. given_up: those that were not taken for a day. failed_at: since
    when it has not taken any; error: why.
    """
    named = pl.DataFrame(
        [(one.label, one.kind, _wants(one)) for one in targets],
        schema={name: RECEIVERS[name] for name in ("target", "to", "wants")},
        orient="row",
    )
    failures = store.read(_FAILURES).rename({"error": "failure"})
    found = named.join(store.read(_SUMS), on="target", how="left", maintain_order="left").join(
        failures, on="target", how="left", maintain_order="left"
    )
    counted = found.with_columns(
        pl.col("sent", "waiting", "given_up").fill_null(0),  # of it there is no message
        pl.coalesce("failure", "error").alias("error"),
    )
    return counted.select(pl.col(name).cast(kind) for name, kind in RECEIVERS.items())


def waiting(store: Store, targets: Sequence[AnyTarget]) -> pl.DataFrame:
    """Return the messages that are still to be sent, the oldest of each target first: WAITING."""
    rows = [
        (
            one.message.target, one.message.event, one.message.recipient or None,
            headline(one.message), one.message.at_ms, one.attempts, one.next_attempt_ms or None,
            one.error,
        )
        for target in targets
        for one in outbox.pending(store, target.label)
    ]  # fmt: skip
    stored = {
        name: pl.Int64 if kind == pl.Datetime("ms") else kind for name, kind in WAITING.items()
    }
    return pl.DataFrame(rows[:WAITING_MAX], schema=stored, orient="row").cast(pl.Schema(WAITING))


def _wants(target: AnyTarget) -> str:
    above = "" if target.min_severity == SEVERITIES[0] else " and above"
    chosen = {name: getattr(target, name) for name in ("rules", "teams", "clusters")}
    limits = [f"{name}: {', '.join(names)}" for name, names in chosen.items() if names]
    return "; ".join([f"{target.min_severity}{above}", *limits])
