"""What tests of the command line share: a command, run here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from goodput_app.cli import main

if TYPE_CHECKING:
    pass


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.main, arguments)
