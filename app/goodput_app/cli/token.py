"""`goodput token`: a token for `/api/v1`, and the table of goodput.toml that lets it in."""

import json
from datetime import UTC, datetime, timedelta

import click

from goodput_app.access import tokens
from goodput_app.access.identity import Role
from goodput_app.access.settings import Token
from goodput_app.cli.options import say


@click.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.VIEWER.value,
    show_default=True,
    help="What it may do.",
)
@click.option("--team", "teams", multiple=True, help="A team whose rows it sees; without: all.")
@click.option("--days", type=click.IntRange(1, 3650), help="Number of days until it expires.")
def token(*, name: str, role: str, teams: tuple[str, ...], days: int | None) -> None:
    """Make a token for a program that asks /api/v1.

    The token goes to standard output and is stored nowhere; the table for goodput.toml, which has
    its SHA-256 only, goes to standard error.
    """
    made = tokens.new_token()
    expires_on = None if days is None else datetime.now(UTC).date() + timedelta(days=days)
    settings = Token(name, tokens.digest(made), role, teams or None, expires_on)
    lines = [
        "[[access.tokens]]",
        f"name = {json.dumps(settings.name)}",
        f'sha256 = "{settings.sha256}"',
        f'role = "{settings.role}"',
    ]
    if settings.teams is not None:
        lines.append(f"teams = {json.dumps(list(settings.teams))}")
    if settings.expires_on is not None:
        lines.append(f"expires_on = {settings.expires_on.isoformat()}")
    for line in ("# Add this to goodput.toml and restart `goodput serve`:", "", *lines, ""):
        say(line)
    click.echo(made)
