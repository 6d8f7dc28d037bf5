"""Since, until, cost and GPU time of findings: as a view has them, and as a command prints them."""

import json
from datetime import UTC, datetime
from pathlib import Path

from tests.app.command_line import run

from goodput_queries.scope import Scope

FACTS = ("finding_key", "since_at", "until_at", "gpu_ms", "cost")


def window(store, cluster):
    """Return the scope of all evidence of a cluster."""
    of = "select first_at, as_of_at from marts.clusters where cluster = $1"
    ends = store.read(of, [cluster]).row(0)
    return Scope(*(round(at.replace(tzinfo=UTC).timestamp() * 1000) for at in ends), cluster)


def rows_of(store, scope, columns=FACTS, view="marts.findings"):
    found = store.read(f"select {', '.join(columns)} from {view}", scope=scope)
    return sorted(found.rows(), key=str)


def printed(store, scope, *command, form="json"):
    """Return the same facts as a command prints them: rows, or the text of another form."""
    moments = [
        f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        for ms in (scope.from_ms, scope.to_ms)
    ]
    closed = str(Path(store.path).with_name("closed.duckdb"))
    given = ["--db", closed, "--format", form, "--cluster", scope.cluster]
    result = run(*command, *given, "--from", moments[0], "--to", moments[1])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if form == "json" else result.stdout


def comparable(row):
    """Return facts as JSON has them: moments as text to the second, amounts rounded."""
    return tuple(
        value.isoformat(timespec="seconds") if isinstance(value, datetime)
        else value[:19] if isinstance(value, str) and value[4:5] == "-"
        else round(value, 6) if isinstance(value, float)
        else value
        for value in row
    )  # fmt: skip
