"""How a command fails: a stated failure is one sentence on standard error and exit code 1."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import click

from goodput_messages.printable import printable
from goodput_queries.errors import GoodputError

if TYPE_CHECKING:
    import polars as pl


class StatedFailure(click.ClickException):
    """A GoodputError as the command line prints it: one sentence, exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence alone."""
        click.echo(printable(self.message), file=file, err=file is None)


class FailedWithRowsError(GoodputError):
    """Done, but not well (checks do not hold): the sentence, and the frame printed before it."""

    def __init__(self, sentence: str, frame: pl.DataFrame) -> None:
        super().__init__(sentence)
        self.frame = frame
