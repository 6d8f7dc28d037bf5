"""The command line: each command is a module of this package, or in a package of its own.

It is imported when it is called.

Results go to standard output, progress to standard error. A stated failure is one sentence and exit
code 1; a command that is used wrongly exits with 2.
"""

import importlib
import logging
from typing import Any

import click

from goodput_app.cli.failures import StatedFailure
from goodput_app.distribution import NAME
from goodput_messages.printable import printable
from goodput_queries import packages
from goodput_queries.errors import GoodputError

PACKAGES = (
    "goodput_app", "goodput_billing", "goodput_formats_extra", "goodput_ingest", "goodput_lake",
    "goodput_messages", "goodput_queries", "goodput_scenarios", "goodput_serving",
    "goodput_synthetic",
)  # fmt: skip
OF_PACKAGE = ""  # instead of a module: an entry point of `packages.COMMANDS`
COMMANDS = {  # in the order in which a newcomer needs them -> module, first line of its help
    "demo": (OF_PACKAGE, "Serve the dashboard on recorded sample data."),
    "ingest": ("ingest", "Ingest files, folders or archives."),
    "profile": ("profile", "See what is read of a job's log; draft a new log format."),
    "run": ("run", "Run a command and record it as a job, with no line changed."),
    "watch": ("run", "Record a process that runs already, until it ends."),
    "snapshot": ("snapshot", "Write the configuration of this node, to compare it with others."),
    "build": ("build", "Update the ledger with newly ingested data."),
    "check": ("query", "Test the invariants; exit code 1 if one fails."),
    "ledger": ("query", "Show where the GPU time went; the rows add up to the capacity."),
    "show": ("views", "List the views with their meaning, or print the rows of one."),
    "gaps": ("query", "List idle gaps with place, owner, cause and cost."),
    "throttling": ("query", "List throttled GPUs and the cost for their runs."),
    "stragglers": ("query", "List stragglers and the cost of waiting for them."),
    "hangs": ("query", "List hung collectives and the ranks that others waited for."),
    "runs": ("query", "List runs with their goodput."),
    "epilog": ("epilog", "Write what a job came to: goodput, waste, why, what to change."),
    "findings": ("findings", "List what needs a person: losses, faults, anomalies."),
    "finding": ("findings", "Acknowledge, dismiss, reopen or comment on the finding KEY."),
    "fixes": ("findings", "List what to do first, by what it saves in the time range."),
    "objectives": ("findings", "List goodput objectives with error budget and burn rates."),
    "serving": (OF_PACKAGE, "List models served, with tokens per second and cost of tokens."),
    "report": ("report", "Write the statement of a day or `month`, or a `weekly` report."),
    "adjust": ("adjust", "Write notes, disputes and credits on statements."),
    "what-if": ("what_if", "Estimate the effect of other GPUs, fewer losses or power limits."),
    "compare": ("compare", "Compare two runs or time ranges, and fail a slower change in CI."),
    "serve": ("serve", "Serve the dashboard, /metrics and the database."),
    "mcp": ("mcp", "Answer agents over MCP with read-only tools."),
    "replay": ("replay", "Replay a recording on the dashboard."),
    "bundle": ("bundle", "Write the evidence of a time range or a run to one file."),
    "collect": ("serve", "Poll the live sources of goodput.toml until Ctrl-C."),
    "notify": ("notify", "Try the notifications of goodput.toml: --test or --dry-run."),
    "doctor": ("doctor.command", "Check what is configured and what is missing."),
    "backup": ("backup", "Copy the database, also while it is served."),
    "restore": ("backup", "Make a backup the database; stop the server first."),
    "retire": ("retire", "Stop monitoring a removed live source."),
    "audit": ("audit", "List who signed in, changed prices, changed findings."),
    "token": ("token", "Make a token for a program that asks /api/v1."),
    "forget": ("forget", "Undo the ingest of a file or folder."),
    "prune": ("prune", "Drop evidence older than [retention] in goodput.toml."),
    "lake": (OF_PACKAGE, "Make and keep a lake, into which many hosts load."),
}


class Commands(click.Group):
    """The commands by name; a command's module is imported when it is called, not for the list."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Return a command, None for a name that is none."""
        if name not in COMMANDS:
            return None
        command: click.Command
        if (module := COMMANDS[name][0]) == OF_PACKAGE:
            command = packages.loaded(packages.COMMANDS, name)
        else:
            found = importlib.import_module(f"goodput_app.cli.{module}")
            command = getattr(found, name.replace("-", "_"))
        return command

    def format_help_text(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what it is right below the usage, so that the list fits a screen."""
        with formatter.indentation():
            formatter.write_text(self.help or "")

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands alone: the usage has the options, so that the list fits a screen."""
        self.format_commands(context, formatter)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from `COMMANDS`, without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        """Run a command; a stated failure ends it without a traceback."""
        try:
            return super().invoke(context)
        except GoodputError as error:
            raise StatedFailure(str(error)) from error


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="[--version] [--debug]",
)
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
