"""`goodput audit`: who did what."""

import click
import polars as pl

from goodput_app.cli.database import existing
from goodput_app.cli.options import database_option, limit_option, output_options, say
from goodput_queries.audit import KEPT_DAYS, entries, verified
from goodput_queries.database import Store
from goodput_queries.errors import StoreError


@click.command()
@click.option("--verify", is_flag=True, help="Check that no entry was changed or removed.")
@click.option("--head", help="Entry that --verify names, as noted before: NUMBER:DIGEST.")
@limit_option
@database_option
@output_options
def audit(*, verify: bool, head: str | None, limit: int | None, db: str) -> pl.DataFrame:
    """List who signed in, changed prices, changed findings.

    It also lists downloads of statements and retired sources. Latest first; kept for 90 days.
    """
    noted = _noted(head)
    with existing(db) as store:
        if verify or noted:
            _check(store, noted)
        found = entries(store, limit)
    if found.is_empty():
        say(f"Nothing is recorded in the last {KEPT_DAYS} days.")
    return found


def _noted(head: str | None) -> tuple[int, str] | None:
    number, _, digest = (head or "").partition(":")
    if head is None:
        return None
    if not number.isdecimal() or not digest:
        raise click.BadParameter(f"{head!r} is not like 1204:3f9a...", param_hint="--head")
    return int(number), digest


def _check(store: Store, noted: tuple[int, str] | None) -> None:
    """Say that the log is as it was written, and how to check it later; raises StoreError."""
    chain = verified(store, noted)
    if chain.faults:
        raise StoreError(f"The audit log is not as it was written: {'; '.join(chain.faults)}.")
    if chain.head is None:
        say("The audit log has no entry to check.")
        return
    number, digest = chain.head
    say(
        f"{chain.entries:,} entries are as they were written. Note the last one outside of this "
        f"machine, to check it later: --head {number}:{digest}"
    )
