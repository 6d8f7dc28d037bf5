"""`goodput backup` and `goodput restore`: a consistent copy of the database, and back."""

from pathlib import Path

import click
import polars as pl

from goodput_app.cli.database import existing
from goodput_app.cli.options import database_option, output_options, say
from goodput_queries.storage import backup as copies


@click.command()
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE_OR_FOLDER")
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="In a folder: remove all but the N newest backups of this database afterwards.",
)
@database_option
@output_options
def backup(*, target: Path, keep: int | None, db: str) -> pl.DataFrame:
    """Copy the database, also while it is served.

    In a folder the copy is named by the time (UTC). Statements that were delivered are files of
    their own: copy their folder too.
    """
    if keep is not None and not target.is_dir():
        raise click.UsageError(f"--keep is for a folder; there is none at {target}, make it first.")
    with existing(db) as store:
        found = store.back_up(target)
    if keep is not None:
        for old in copies.backups_of(db, target)[:-keep]:
            old.unlink()
            say(f"Removed {old}.")
    return found


@click.command()
@click.argument("backup_file", type=click.Path(path_type=Path), metavar="BACKUP")
@click.option(
    "--replace",
    "is_replacing",
    is_flag=True,
    help="Rename the existing database before the backup takes its place.",
)
@database_option
@output_options
def restore(*, backup_file: Path, is_replacing: bool, db: str) -> pl.DataFrame:
    """Make a backup the database; stop the server first."""
    found, replaced = copies.restore(backup_file, db, is_replacing=is_replacing)
    if replaced is not None:
        say(f"The database that was there is now {replaced}.")
    return found
