"""`goodput report`: the chargeback statement of a day, as files."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click

from goodput_app.cli.database import built
from goodput_app.cli.deliver import deliver
from goodput_app.cli.month import month
from goodput_app.cli.options import database_option, out_folder_option, say
from goodput_app.cli.weekly import weekly
from goodput_app.settings import settings
from goodput_billing.render import files
from goodput_billing.render.presentation import status_of
from goodput_billing.render.wording import money
from goodput_billing.statement import one_account
from goodput_billing.statement.statement import Statement, statement
from goodput_queries.errors import GoodputError

FORMATS = ("csv", "parquet", "html", "pdf", "focus")
VERSIONS = ("1.2", "1.3", "1.4")
OF_FILES = ("out", "formats", "focus_version", "account", "by_account")  # options


def _formats(text: str) -> list[str]:
    """Return the formats that are named with commas between them, each once."""
    named = [part.strip() for part in text.split(",") if part.strip()]
    if unknown := [name for name in named if name not in FORMATS]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(FORMATS)}.")
    return list(dict.fromkeys(named))


def day(text: str) -> date:
    """Return a date of the command line, or `yesterday` in the zone of the statement."""
    if text == "yesterday":
        now = datetime.now(settings().statement.zone_info())
        return now.date() - timedelta(days=1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a date; expected like 2026-11-19, or yesterday."
        ) from None


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


@click.group(invoke_without_command=True)
@click.option(
    "--date",
    "when",
    type=day,
    metavar="DATE",
    default="yesterday",
    show_default=True,
    help="The day to report (the date on which it begins).",
)
@database_option
@out_folder_option
@click.option(
    "--formats",
    type=_formats,
    metavar="FORMAT,...",
    default=",".join(FORMATS),
    show_default=True,
    help="Formats to write.",
)
@click.option(
    "--focus-version",
    type=click.Choice(VERSIONS),
    default=VERSIONS[0],
    show_default=True,
    help="Version of the FOCUS file.",
)
@click.option(
    "--deliver",
    "delivers",
    is_flag=True,
    help="Deliver as configured in [report]: the given day, or all that are due.",
)
@click.option(
    "--close",
    "closes_now",
    is_flag=True,
    help="Close a day that is over without waiting for late evidence, which then becomes a "
    "correction.",
)
@click.option(
    "--account",
    metavar="NAME",
    help="Statement of one account, without data of others.",
)
@click.option(
    "--by-account",
    "--by-team",
    "by_account",
    is_flag=True,
    help="Also write a folder for each account.",
)
def report(
    *,
    when: date,
    db: str,
    out: Path,
    formats: list[str],
    focus_version: str,
    closes_now: bool,
    account: str | None,
    by_account: bool,
    delivers: bool,
) -> None:
    """Write the statement of a day or `month`, or a `weekly` report."""
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        if any(map(_is_given, context.params)):
            raise click.UsageError(f"options of `{context.invoked_subcommand}` stand behind it.")
        return
    if account is not None and by_account:
        raise click.UsageError("--account makes one account's files, --by-account those of all.")
    if delivers:
        if others := [name for name in OF_FILES if _is_given(name)]:
            option = f"--{others[0].replace('_', '-')}"
            raise click.UsageError(f"{option} is not for --deliver, which does as [report] says.")
        deliver(db, when if _is_given("when") else None, closes_now=closes_now)
        return
    with built(db) as store:
        made = statement(store, when, settings().statement, closes_now=closes_now)
        if account is not None:
            made = one_account.of_account(store, made, account)
        written = files.write(made, out, formats, focus_version)
        for own in one_account.each_account(store, made) if by_account else ():
            folder = out / one_account.file_name(own.account or "")
            written += files.write(own, folder, formats, focus_version)
    for path in written:
        click.echo(str(path))
    unpriced = int(made.rows.filter(made.rows["price_per_gpu_h"].is_null())["gpu_ms"].sum())
    say(f"{when}: {money(made.total_cost)} {made.policy.currency}. {status_of(made)}")
    if closes_now and not made.is_closed:
        raise GoodputError(why_open(made))
    if unpriced:
        say(
            f"{unpriced / 3_600_000:,.1f} GPU-hours have no price and are not included: "
            "add their rates to a rate card and ingest it (goodput ingest rates FILE)."
        )


report.add_command(month)
report.add_command(weekly)


def why_open(made: Statement) -> str:
    """Return why a day is open that was to be closed."""
    end = made.day.to_ms
    if max(made.evidence_ms, datetime.now(UTC).timestamp() * 1000) < end:
        at = datetime.fromtimestamp(end / 1000, UTC)
        return f"{made.day.date} is not closed: the day ends at {at:%Y-%m-%d %H:%M} UTC."
    return f"{made.day.date} is not closed: the database is read-only for you."
