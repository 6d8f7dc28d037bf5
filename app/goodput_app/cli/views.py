"""`goodput show`: the catalogue of views, and the rows of one."""

import click
import polars as pl

from goodput_app import ranked
from goodput_app.cli import output
from goodput_app.cli.database import built, existing, quoted
from goodput_app.cli.options import rows_options, say
from goodput_queries.catalog.find import catalogue, find_view
from goodput_queries.catalog.models import BASE_LAYERS, Model
from goodput_queries.database import Store
from goodput_queries.names import resolved
from goodput_queries.scope import Scope


@click.command()
@click.argument("view", required=False)
@rows_options
def show(view: str | None, limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
    """List the views with their meaning, or print the rows of one."""
    if view is None:
        return _views()
    model = find_view(view)
    if model.layer in {*BASE_LAYERS, "reference"}:  # which no scope restricts
        with existing(db) as store:
            return rows_of(store, model, scope, limit)
    with built(db) as store:
        return rows_of(store, model, resolved(store, scope), limit)


def _views() -> pl.DataFrame:
    layers = ("marts", "checks", "intermediate", "staging", "reference", *BASE_LAYERS)
    models = sorted(catalogue().values(), key=lambda m: (layers.index(m.layer), m.name))
    return pl.DataFrame(
        [
            {
                "view": m.qualified_name,
                "meaning": m.description,
                "grain": ", ".join(m.grain),
                "access": m.access,
            }
            for m in models
        ]
    )


def rows_of(store: Store, model: Model, scope: Scope, limit: int | None) -> pl.DataFrame:
    """Return the rows of a view, highest cost first; say so where a time range has none."""
    found = ranked.rows_of(store, model, scope, limit)
    if found.is_empty() and (scope.from_ms, scope.to_ms) != (None, None):
        say(f"No rows in this time range{extent(store)}.")
    return found


def nothing_ingested(store: Store, db: str) -> str:
    """Return that a database has nothing of any source, and how to ingest; empty where it has."""
    if not store.read("select count(*) = 0 from state.ingested").item():
        return ""
    return f"Nothing was ingested: `goodput ingest auto PATH --db {quoted(db)}`."


def extent(store: Store) -> str:
    """Return the time range of the data in brackets; empty without data."""
    row = store.read("select min(first_at) as a, max(as_of_at) as b from marts.clusters").row(0)
    first, last = (output.cell("at", at) for at in row)
    if row[0] is not None and row[0] == row[1]:
        return f" (data of one moment, {first}: ingest a listing of what runs with --observed-at)"
    return "" if row[0] is None else f" (data: {first} to {last})"
