"""`goodput doctor`: problems first, each with the setting that fixes it."""

import click
import polars as pl

from goodput_app.cli.doctor.doctor import findings
from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.cli.options import database_option, output_options
from goodput_app.text.units import count


@click.command()
@database_option
@output_options
def doctor(db: str) -> pl.DataFrame:
    """Check what is configured and what is missing.

    Problems come first; the exit code is 1 where there is one.
    """
    found = findings(db)
    if (problems := found["status"].to_list().count("problem")) > 0:
        raise FailedWithRowsError(f"{count(problems, 'problem')} found.", found)
    return found
