"""The command line: each command is a module of this package, imported when it is called.

Results go to standard output, progress to standard error. A stated failure is one sentence and exit
code 1; a command that is used wrongly exits with 2.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

import click

from goodput_app.cli.options import StatedFailure
from goodput_app.distribution import NAME
from goodput_billing.render.safe_text import printable
from goodput_queries.errors import GoodputError

PACKAGES = (
    "goodput_app", "goodput_billing", "goodput_ingest", "goodput_queries", "goodput_scenarios",
)  # fmt: skip
COMMANDS = {  # in the order in which a newcomer needs them -> module of this package
    "demo": "demo",
    "ingest": "ingest",
    "build": "build",
    "check": "query",
    "ledger": "query",
    "show": "views",
    "gaps": "query",
    "throttling": "query",
    "stragglers": "query",
    "hangs": "query",
    "runs": "query",
    "findings": "findings",
    "finding": "findings",
    "fixes": "findings",
    "objectives": "findings",
    "serving": "serving",
    "report": "report",
    "adjust": "adjust",
    "what-if": "what_if",
    "compare": "compare",
    "serve": "serve",
    "replay": "replay",
    "bundle": "bundle",
    "collect": "serve",
    "notify": "notify",
    "doctor": "doctor.command",
    "backup": "backup",
    "restore": "backup",
    "retire": "retire",
    "audit": "audit",
    "token": "token",
    "forget": "forget",
    "prune": "prune",
    "lake": "lake",
}


class Commands(click.Group):
    """The commands by name; a command's module is imported when it is called."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Return a command, None for a name that is none."""
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"goodput_app.cli.{COMMANDS[name]}")
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def invoke(self, context: click.Context) -> Any:
        """Run a command; a stated failure ends it without a traceback."""
        try:
            return super().invoke(context)
        except GoodputError as error:
            raise StatedFailure(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=NAME, message="%(prog)s %(version)s")
@click.option(
    "--debug",
    "is_debugging",
    is_flag=True,
    envvar="GOODPUT_DEBUG",
    help="Print tracebacks of unexpected errors (GOODPUT_DEBUG=1).",
)
def main(*, is_debugging: bool) -> None:
    """Where every GPU-hour went, what the waste cost, why, what to do first."""
    logging.basicConfig(handlers=[_log_handler()])  # where nothing else was set up
    if is_debugging:
        for package in PACKAGES:
            logger = logging.getLogger(package)
            logger.setLevel(logging.DEBUG)
            logger.addHandler(_log_handler())
            logger.propagate = False


class _Printable(logging.Formatter):
    """Log lines without control characters: names in files and answers come from others."""

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n".join(map(printable, lines))


def _log_handler() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable())
    return handler
