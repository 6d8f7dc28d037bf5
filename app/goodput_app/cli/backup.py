"""`goodput backup` and `goodput restore`: a consistent copy of the database, and back."""

from pathlib import Path

import click
import polars as pl

from goodput_app.cli.database import existing
from goodput_app.cli.option_table import option
from goodput_app.cli.options import database_option, output_options, say
from goodput_queries.storage import backup as copies


@click.command()
@click.argument("target", type=click.Path(path_type=Path), metavar="FILE_OR_FOLDER")
@option("backup.keep", type=click.IntRange(1))
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
@option("backup.replace")
@database_option
@output_options
def restore(*, backup_file: Path, is_replacing: bool, db: str) -> pl.DataFrame:
    """Make a backup the database; stop the server first."""
    found, replaced = copies.restore(backup_file, db, is_replacing=is_replacing)
    if replaced is not None:
        say(f"The database that was there is now {replaced}.")
    return found
