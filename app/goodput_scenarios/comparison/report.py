"""A comparison as text, JSON, Markdown or HTML, for people and for CI."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from goodput_billing.render import templates
from goodput_messages.printable import printable
from goodput_scenarios.comparison.compare import Comparison
from goodput_scenarios.comparison.gate import shown

CELL_MAX_CHARS = 120
UNKNOWN = "-"
MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]()<>#|!~&"})
LEDGER_ROWS = 12
SHARE_SHOWN = 0.0005  # a smaller change of a share is 0.0 points


@dataclass(frozen=True)
class Table:
    """Rows of texts; the columns in `numbers` stand to the right."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numbers: frozenset[int] = frozenset()


def as_json(found: Comparison, currency: str) -> str:
    """Return one object: verdicts, measures, attributes, ledger, notes."""
    answer: dict[str, Any] = {
        "a": _side(found, "a"),
        "b": _side(found, "b"),
        "verdicts": [
            {"limit": str(limit), "outcome": verdict.outcome, "reason": verdict.reason}
            for limit, verdict in found.verdicts
        ],
        "measures": [
            {**row, "unit": currency if row["unit"] == "currency" else row["unit"]}
            for row in found.measures.iter_rows(named=True)
        ],
        "attributes": found.attributes.to_dicts(),
        "ledger": found.ledger.drop("colour").to_dicts(),
        "notes": found.notes,
    }
    return json.dumps(answer, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def as_text(found: Comparison, currency: str) -> str:
    """Return columns of text, with nothing in them that a terminal obeys."""
    lines = [_title(found), "", *_verdicts(found)]
    for table in _tables(found, currency):
        lines += ["", table.title, *_aligned(table)]
    lines += ["", *found.notes] if found.notes else []
    return "\n".join(printable(line).rstrip() for line in lines) + "\n"


def as_markdown(found: Comparison, currency: str) -> str:
    """Return Markdown, as a comment on a change shows it."""
    lines = [f"## {_plain(_title(found))}", ""]
    lines += [f"**{_plain(line)}**" for line in _verdicts(found)]
    for table in _tables(found, currency):
        rule = ["---:" if place in table.numbers else "---" for place in range(len(table.columns))]
        lines += ["", f"### {table.title}", "", _row(table.columns), f"| {' | '.join(rule)} |"]
        lines += [_row(row) for row in table.rows]
    lines += ["", *(f"- {_plain(note)}" for note in found.notes)] if found.notes else []
    return "\n".join(lines) + "\n"


def as_html(found: Comparison, currency: str) -> str:
    """Return a page that needs nothing else; names are escaped, whatever they hold."""
    return templates.template("goodput_scenarios.comparison", "report.html.j2").render(
        title=printable(_title(found)),
        verdicts=[
            (verdict.outcome, line)
            for (_, verdict), line in zip(found.verdicts, _verdicts(found), strict=True)
        ],
        tables=_tables(found, currency),
        notes=[printable(note) for note in found.notes],
    )


FORMATS: dict[str, Callable[[Comparison, str], str]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
    "html": as_html,
}
SUFFIXES = {".txt": "text", ".json": "json", ".md": "markdown", ".html": "html"}


def number(value: float | None) -> str:
    """Return a number with four digits."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"


def measures_shown(found: Comparison, currency: str) -> pl.DataFrame:
    """Return the measures with texts for what has a unit of its own in each row.

    Columns besides those of MEASURES: value_a, value_b, interval, counts, spreads
    """
    texts: list[dict[str, str]] = [
        {
            "value_a": _value(row["a"], row["unit"]),
            "value_b": _value(row["b"], row["unit"]),
            "interval": interval(row["low_ratio"], row["high_ratio"]),
            "counts": _counts(row),
            "spreads": _spreads(row),
        }
        for row in found.measures.iter_rows(named=True)
    ]
    columns = ("value_a", "value_b", "interval", "counts", "spreads")
    units = pl.col("unit").replace({"currency": currency, "ratio": "%"})
    return found.measures.with_columns(units).hstack(
        pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String))
    )


def interval(low: float | None, high: float | None) -> str:
    """Return a 95 % interval of a change."""
    return UNKNOWN if low is None or high is None else f"{shown(low)} to {shown(high)}"


def _value(value: float | None, unit: str) -> str:
    return number(value) if value is None or unit != "ratio" else f"{value * 100:.1f}"


def _side(found: Comparison, name: str) -> dict[str, Any]:
    side = getattr(found, name)
    scope = side.side.scope
    return {
        "name": side.side.name,
        "run_key": scope.run,
        "from_ms": scope.from_ms,
        "to_ms": scope.to_ms,
        "runs": side.runs.height,
    }


def _title(found: Comparison) -> str:
    return f"{found.b.side.name} against {found.a.side.name}"


def _verdicts(found: Comparison) -> list[str]:
    return [
        f"{verdict.outcome.capitalize()} ({limit}): {verdict.reason}."
        for limit, verdict in found.verdicts
    ]


def _tables(found: Comparison, currency: str) -> list[Table]:
    measures = [
        (
            row["measure"] if row["workload"] is None else f"{row['measure']}, {row['workload']}",
            *(row[name] for name in ("unit", "value_a", "value_b")),
            UNKNOWN if row["change_ratio"] is None else shown(row["change_ratio"]),
            *(row[name] for name in ("interval", "counts", "spreads")),
            row["not_comparable"] or "",
        )
        for row in measures_shown(found, currency).iter_rows(named=True)
    ]
    columns = ("Measure", "Unit", "A", "B", "Change", "95 % interval", "n", "Spread")
    differing = [
        (label, a or UNKNOWN, b or UNKNOWN)
        for label, a, b in found.attributes.filter("is_different").select("label", "a", "b").rows()
    ]
    shares = [
        (label, *(f"{share * 100:.1f} %" for share in (a, b)), f"{(b - a) * 100:+.1f}")
        for label, a, b in found.ledger.select("label", "a_ratio", "b_ratio").rows()
        if abs(b - a) >= SHARE_SHOWN
    ]
    tables = [
        Table("Measures", (*columns, "Not comparable"), _cut(measures), frozenset({2, 3, 4, 5, 7})),
        Table("What differs", ("Attribute", "A", "B"), _cut(differing)),
        Table(
            "Allocated time",
            ("Category", "A", "B", "Change (points)"),
            _cut(shares[:LEDGER_ROWS]),
            frozenset({1, 2, 3}),
        ),
    ]
    return [table for table in tables if table.rows]


def _counts(row: dict[str, Any]) -> str:
    """Return what was counted on both sides, and how much of it is independent."""
    if row["count_a"] is None:
        return ""
    sides = [
        f"{row[f'count_{side}']:,}"
        + (f" ({row[f'effective_{side}']:,.0f})" if row["counted"] == "steps" else "")
        for side in ("a", "b")
    ]
    return f"{' / '.join(sides)} {row['counted']}"


def _spreads(row: dict[str, Any]) -> str:
    if row["spread_a_ratio"] is None:
        return ""
    return " / ".join(f"{row[f'spread_{side}_ratio'] * 100:.1f} %" for side in ("a", "b"))


def _cut(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return rows whose texts are printable and short: names in job logs are not ours."""
    return [tuple(printable(cell)[:CELL_MAX_CHARS] for cell in row) for row in rows]


def _aligned(table: Table) -> list[str]:
    rows = [table.columns, *table.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    return [
        "  ".join(
            cell.rjust(width) if place in table.numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return printable(text).translate(MARKDOWN)
