"""The schema of a database file: base tables, reference tables, macros, views and empty stages."""

import hashlib
import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import duckdb

from goodput_queries import packages
from goodput_queries.catalog import columns, models, rules
from goodput_queries.catalog.comments import describe_all
from goodput_queries.errors import BuildError
from goodput_queries.storage import migrations

log = logging.getLogger(__name__)

DERIVED_LAYERS = tuple(layer for layer in models.BUILT_LAYERS if layer != models.TEMP_LAYER)
_COLUMNS = """select column_name, data_type from duckdb_columns()
    where schema_name = $1 and table_name = $2 order by column_index"""


def create_missing(
    cursor: duckdb.DuckDBPyConnection, path: str, known: Sequence[migrations.Migration]
) -> None:
    """Create what a file lacks, inside the caller's transaction; of known SQL nothing changes.

    Where the SQL files differ from those that made the file, every derived table is dropped: the
    next build computes the ledger from the base tables.
    """
    digest = catalog_digest()
    for layer in (*models.BASE_LAYERS, "reference"):
        cursor.execute(f"create schema if not exists {layer}")
    cursor.execute("create table if not exists raw.catalog (digest varchar)")
    before = cursor.execute("select digest from raw.catalog").fetchall()
    version = migrations.recorded_version(cursor)
    if before == [(digest,)] and version == migrations.current_version(known):
        return
    for model in models.base_tables().values():
        _create_base(cursor, model)
    for name, select in models.reference_tables().items():
        cursor.execute(f"create or replace table reference.{name} as {select}")
    for text in models.macro_files():
        cursor.execute(text)
    for layer in DERIVED_LAYERS:
        cursor.execute(f"drop schema if exists {layer} cascade")
        cursor.execute(f"create schema {layer}")
    cursor.execute("delete from state.built")  # the next build is a full build
    cursor.execute("delete from state.refused_builds")
    _create_views(cursor)
    if before:
        log.warning(
            "%s: another version of Goodput wrote this database; the next build recomputes the "
            "ledger from the stored evidence.",
            path,
        )
    migrations.record_version(cursor, digest, known)


@cache
def catalog_digest() -> str:
    """Return a digest of all SQL and CSV files: when it changes, the views are rebuilt."""
    text = hashlib.blake2b(digest_size=16)
    for layer in models.LAYERS:
        for model in models.of_layer(layer).values():
            text.update(model.sql.encode())
    for macro in models.macro_files():
        text.update(macro.encode())
    for file in models.reference_files().values():
        text.update(Path(file).read_bytes())
    for name in sorted(models.reference_tables().keys() - models.reference_files().keys()):
        text.update(models.reference_tables()[name].encode())
    for common in packages.in_each("sql", columns.COMMON):
        text.update(common.read_bytes())
    return text.hexdigest()


def _create_views(cursor: duckdb.DuckDBPyConnection) -> None:
    """Create every view and an empty table for every stored stage, in dependency order.

    Binding a view binds all that it reads, however deep: views are empty tables first, until what
    reads them is there. It takes a third off the time of a new database.
    """
    order = models.build_order()
    for model in order:
        _create(cursor, model, is_table=True)
    for rule in rules.rules():
        if rule.sql is not None:
            cursor.execute(f"from marts.{rule.view} limit 0")
            rules.check_columns(rule.name, (column[0] for column in cursor.description))
    for model in reversed(order):
        if not model.is_stored:
            cursor.execute(f"drop table {model.qualified_name}")
            _create(cursor, model, is_table=False)
    lasting = (model for model in order if model.layer != models.TEMP_LAYER)
    describe_all(cursor, lasting)


def _create_base(cursor: duckdb.DuckDBPyConnection, model: models.Model) -> None:
    """Create a base table; one of an earlier version gets the columns it lacks, its rows stay."""
    present = dict(cursor.execute(_COLUMNS, [model.layer, model.name]).fetchall())
    if not present:
        cursor.execute(model.sql)
        return
    drafts = f"{model.name}_next"
    cursor.execute(
        model.sql.replace(f"create table {model.qualified_name} (", f"create temp table {drafts} (")
    )
    wanted = dict(cursor.execute(_COLUMNS, ["main", drafts]).fetchall())
    cursor.execute(f"drop table temp.{drafts}")
    for column in wanted.keys() - present.keys():
        cursor.execute(f"alter table {model.qualified_name} add column {column} {wanted[column]}")


def _create(cursor: duckdb.DuckDBPyConnection, model: models.Model, *, is_table: bool) -> None:
    """Create a stage or mart: as an empty table, or as a view; raise BuildError naming it."""
    name = model.qualified_name
    try:
        if model.is_written_by_code:
            cursor.execute(model.sql)
        elif model.layer == models.TEMP_LAYER:
            select = f"from ({model.select()}) limit 0"
            cursor.execute(f"create or replace temp table {model.name} as {select}")
        elif is_table:
            cursor.execute(f"create table {name} as select * from ({model.sql}) limit 0")
            if model.is_stored:  # stages of one build read each other's drafts
                cursor.execute(f"create or replace temp table {model.name} as from {name}")
        else:
            cursor.execute(f"create view {name} as {model.sql}")
    except duckdb.Error as error:
        raise BuildError(f"{name} cannot be created: {error}") from error
