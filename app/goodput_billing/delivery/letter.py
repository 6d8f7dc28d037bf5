"""A statement as a letter: its figures in a few lines of text, and as HTML for mail programs."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from rich.cells import cell_len, set_cell_size

from goodput_billing.render import templates
from goodput_billing.render.presentation import Presentation, present
from goodput_billing.render.wording import (
    NONE,
    Table,
    account_name,
    amounts,
    change,
    hours,
    percent,
)
from goodput_billing.statement.statement import Statement
from goodput_messages.mail import Letter
from goodput_messages.printable import printable

TEMPLATE = "letter.html.j2"
ACCOUNTS_SHOWN = 25
LOSSES_SHOWN = 5
NAME_MAX_CHARS = 40
GAP = "  "
INDENT = "    "


@dataclass(frozen=True)
class Enclosed:
    """What a letter points to: (words, URL), the files with it, and files too large for that."""

    links: Sequence[tuple[str, str]] = ()
    files: Sequence[str] = ()
    too_large: Sequence[str] = ()

    @property
    def sentences(self) -> list[str]:
        """Return the sentence about the files."""
        found = []
        if self.files:
            found.append(f"Attached: {', '.join(self.files)}.")
        if self.too_large:
            found.append(f"Too large to be attached: {', '.join(self.too_large)}.")
        return found


def letter(
    made: Statement, state: str, identity: str, enclosed: Enclosed, answers: str | None = None
) -> Letter:
    """Return the letter of a statement; state: whether it is final, in a few words.

    Names of accounts and runs are cut, and cannot begin a line, a header or a tag.
    """
    page = present(made, lines=0)
    tables = [table for table in (_accounts(made), _losses(made)) if table.rows]
    notices = [*_notices(made), *enclosed.sentences]
    site = f" ({made.settings.site})" if made.settings.site else ""
    template = templates.template("goodput_billing.delivery", TEMPLATE)
    html = template.render(page=page, tables=tables, notices=notices, links=enclosed.links)
    return Letter(
        subject=f"GPU statement {made.day.date}{site}: {page.tiles[0][1]}, {state}",
        text=_text(page, tables, notices, enclosed.links),
        html=html,
        identity=identity,
        answers=answers,
    )


def _notices(made: Statement) -> list[str]:
    """Return what a reader must not miss."""
    found = []
    money = amounts(made.policy.currency)
    if len(made.bookings) > 1:
        last = made.bookings[-1]
        amount = sum(last.rows["total_cost"].drop_nulls(), start=made.total_cost * 0)
        found.append(
            f"Correction {last.number} adds {money(amount)}: evidence came after the day had "
            "closed. All earlier rows stand as billed."
        )
    unpriced_ms = int(made.accounts["unpriced_ms"].sum())
    if unpriced_ms:
        found.append(f"{hours(unpriced_ms)} GPU-hours have no price and are not included.")
    return found


def _accounts(made: Statement) -> Table:
    """Return the accounts that pay most; what was not allocated comes last."""
    money = amounts(made.policy.currency)
    frame = made.accounts.filter((pl.col("gpu_ms") != 0) | (pl.col("total_cost") != 0)).sort(
        "is_account", "total_cost", descending=True, maintain_order=True
    )
    rows = [
        [
            _short(account_name(made, row)),
            hours(row["gpu_ms"]),
            percent(row["productive_ms"], row["gpu_ms"]) if row["is_account"] else NONE,
            money(row["total_cost"]),
            change(row["total_cost"], row["yesterday_cost"]),
        ]
        for row in frame.head(ACCOUNTS_SHOWN).iter_rows(named=True)
    ]
    rest = frame.slice(ACCOUNTS_SHOWN)
    if rest.height:
        amount = sum(rest["total_cost"].drop_nulls(), start=made.total_cost * 0)
        rows.append(
            [f"{rest.height:,} more", hours(int(rest["gpu_ms"].sum())), "", money(amount), ""]
        )
    return Table(
        "Accounts",
        [("Account", False), ("GPU-h", True), ("Useful", True), ("Total", True),
         ("Against the day before", True)],
        rows,
        total=["Total", hours(int(frame["gpu_ms"].sum())), "", money(made.total_cost), ""],
    )  # fmt: skip


def _losses(made: Statement) -> Table:
    money = amounts(made.policy.currency)
    rows = [
        [
            money(row["cost"], "no price"), hours(row["gpu_ms"]), _short(row["account"] or NONE),
            _short(row["run_id"] or NONE), _short(row["label"]),
        ]
        for row in made.losses.head(LOSSES_SHOWN).iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        "Top losses by cost",
        [("Cost", True), ("GPU-h", True), ("Account", False), ("Run", False), ("Loss", False)],
        rows,
    )


def _text(
    page: Presentation,
    tables: Sequence[Table],
    notices: Sequence[str],
    links: Sequence[tuple[str, str]],
) -> str:
    tiles = Table("", [("", False), ("", True), ("", False)], page.tiles)
    lines = [page.title, page.subtitle, "", page.status, "", *_in_columns(tiles), ""]
    for table in tables:
        lines += [table.title, *_in_columns(table), ""]
    lines += [*notices, *(f"{words}: {url}" for words, url in links)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _in_columns(table: Table) -> list[str]:
    """Return a table as lines of text, columns side by side."""
    heads = [name for name, _ in table.columns]
    rows = [[printable(cell) for cell in row] for row in table.rows]
    rows = [*([heads] if any(heads) else []), *rows, *([list(table.total)] if table.total else [])]
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(heads))]
    found = []
    for row in rows:
        cells = []
        for text, width, (_, is_number) in zip(row, widths, table.columns, strict=True):
            blank = " " * (width - cell_len(text))
            cells.append(blank + text if is_number else text + blank)
        found.append(f"{INDENT}{GAP.join(cells)}".rstrip())
    return found


def _short(name: str) -> str:
    text = printable(name)
    if cell_len(text) <= NAME_MAX_CHARS:
        return text
    return f"{set_cell_size(text, NAME_MAX_CHARS - 1)}\N{HORIZONTAL ELLIPSIS}"
