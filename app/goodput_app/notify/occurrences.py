"""Findings of a database that are open now, and those that each target was sent."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from goodput_app.notify.plan import Changes, Occurrence, Seen
from goodput_messages import outbox
from goodput_messages.message import Notice, finding_url
from goodput_messages.outbox import AT, naive_utc
from goodput_queries.catalog import models
from goodput_queries.database import LocalStore, Store
from goodput_queries.evidence import load
from goodput_queries.scope import Scope, epoch_ms, utc_at

WINDOW_MS = 24 * 3_600_000  # findings of the last day
LIVE_MS = 3_600_000  # evidence that ends earlier says nothing of now
OCCURRENCES: dict[str, Any] = {
    "target": pl.String, "finding_key": pl.String, "seen_at": AT, "cluster": pl.String,
    "content": pl.String, "first_id": pl.String, "notified_at": AT, "silenced": pl.String,
    "ended_at": AT,
}  # fmt: skip


def seen(store: Store, now: datetime, public_url: str | None) -> Seen | None:
    """Return the open findings of the last day; None before the first build of a new database."""
    if not store.read("select exists (from state.built) as is_built").item():
        return None
    now_ms = epoch_ms(now)
    from_ms = now_ms - WINDOW_MS
    rows = store.read("select * from marts.open_findings", scope=Scope(from_ms=from_ms))
    clusters = store.read("select cluster, as_of_at from marts.clusters")
    frozen = clusters.filter(pl.col("as_of_at") < naive_utc(now) - timedelta(milliseconds=LIVE_MS))
    notices = [_notice(row, from_ms, now_ms, public_url) for row in rows.iter_rows(named=True)]
    return Seen({one.finding_key: one for one in notices}, now_ms, set(frozen["cluster"]))


def known(store: Store, target: str) -> dict[str, Occurrence]:
    """Return the occurrences of a target that have not ended, by finding."""
    rows = store.read(
        "select * from state.notified_findings where target = $1 and ended_at is null "
        "order by seen_at",
        [target],
    )
    return {row["finding_key"]: _occurrence(row) for row in rows.iter_rows(named=True)}


def write(store: LocalStore, changes: Sequence[Changes], now: datetime) -> None:
    """Write what was decided, in one transaction; delete what is old."""
    kept = [_occurrence_row(one) for change in changes for one in change.occurrences]
    with store.writing() as cursor:
        for one in (one for change in changes for one in change.withdrawn):
            cursor.execute(
                "delete from state.notified_findings where (target, finding_key, seen_at) = "
                "($1, $2, $3)",
                [one.target, one.finding_key, utc_at(one.seen_ms)],
            )
        model = models.of_layer("state")["notified_findings"]
        load.insert_keyed(cursor, model, pl.DataFrame(kept, schema=OCCURRENCES), sequence=0)
        outbox.add(cursor, (one for change in changes for one in change.messages), now)
        before = naive_utc(now) - outbox.KEPT
        cursor.execute("delete from state.notified_findings where ended_at < $1", [before])


def _notice(row: Mapping[str, Any], from_ms: int, to_ms: int, public_url: str | None) -> Notice:
    idle_since = row["idle_since_at"]
    since_ms = epoch_ms(row["since_at"]) if row["since_at"] else from_ms
    return Notice(
        finding_key=row["finding_key"],
        rule=row["rule"],
        severity=row["severity"],
        title=row["title"],
        subject=row["subject"] or "",
        since_ms=since_ms,
        evidence=row["evidence"] or "",
        what_to_do=row["what_to_do"] or "",
        is_cut=since_ms == from_ms,  # an earlier one is that of its evidence
        state=row["state"],
        owner=row["owner"],
        cluster=row["cluster"],
        node=row["node"],
        gpu_index=row["gpu_index"],
        run=row["run_name"],
        team=row["team"],
        user=row["user_name"],
        gpu_ms=row["gpu_ms"],
        idle_gpus=row["idle_gpus"],
        idle_since_ms=None if idle_since is None else epoch_ms(idle_since),
        url=finding_url(public_url, row["finding_key"], from_ms, to_ms),
    )


def _occurrence(row: Mapping[str, Any]) -> Occurrence:
    return Occurrence(
        target=row["target"],
        finding_key=row["finding_key"],
        seen_ms=epoch_ms(row["seen_at"]),
        notice=msgspec.json.decode(row["content"], type=Notice),
        first_id=row["first_id"],
        notified_ms=None if row["notified_at"] is None else epoch_ms(row["notified_at"]),
        silenced=row["silenced"],
    )


def _occurrence_row(one: Occurrence) -> dict[str, Any]:
    return {
        "target": one.target,
        "finding_key": one.finding_key,
        "seen_at": utc_at(one.seen_ms),
        "cluster": one.notice.cluster,
        "content": msgspec.json.encode(one.notice).decode(),
        "first_id": one.first_id,
        "notified_at": None if one.notified_ms is None else utc_at(one.notified_ms),
        "silenced": one.silenced,
        "ended_at": None if one.ended_ms is None else utc_at(one.ended_ms),
    }
