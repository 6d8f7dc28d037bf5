"""What tests of the command line share: a command, run here."""

from click.testing import CliRunner

from goodput_app.cli import main


def run(*arguments):
    return CliRunner().invoke(main.main, arguments)
