"""`goodput retire`: stop monitoring a removed live source."""

import click
import polars as pl

from goodput_app.access import audit
from goodput_app.access.identity import Action
from goodput_app.cli.database import existing
from goodput_app.cli.options import database_option, output_options, say
from goodput_app.cli.serve import configured
from goodput_app.settings import settings_file
from goodput_ingest.live import status
from goodput_queries.errors import GoodputError


@click.command()
@click.argument("source")
@click.argument("origin", required=False)
@database_option
@output_options
def retire(*, source: str, origin: str | None, db: str) -> pl.DataFrame:
    """Stop monitoring a removed live source.

    Its evidence stays. Configure it again to undo this. ORIGIN: only the source with this URL or
    folder; default: all with the name.
    """
    asked = {(one.reads, one.origin) for one in configured()}
    with existing(db) as store:
        known = status.watched(store)
        chosen = [s for s in known if s.source == source and origin in {None, s.origin}]
        if not chosen:
            names = ", ".join(f"{s.source} ({s.origin})" for s in known) or "none"
            wanted = source if origin is None else f"{source} ({origin})"
            raise GoodputError(f"{db}: no live source {wanted} is reported. Reported: {names}.")
        gone = [one for one in chosen if (one.source, one.origin) not in asked]
        if not gone:
            raise GoodputError(
                f"{source} is still in {settings_file()}: remove its [[collect]] table first."
            )
        names = ", ".join(f"{one.source} ({one.origin})" for one in gone)
        with audit.acting(store, Action.RETIRE_SOURCE, names):
            found = status.retire(store, gone)
    say("The evidence of these sources stays. A collector that still polls one reports it again.")
    return found
