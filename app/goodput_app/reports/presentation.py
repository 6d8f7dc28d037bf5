"""A statement as people read it: words, tables and bars, the same for the page and the PDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from goodput_app.reports import closing
from goodput_app.reports.charges import MS_PER_HOUR
from goodput_app.reports.summary import BUCKETS, NOBODYS, account_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from goodput_app.reports.statement import Statement

UNKNOWN = "unknown"
NONE = "\N{EN DASH}"
BARS_SHOWN = 20
USES = {
    "productive": ("Productive", "#159a5c"),
    "other_use": ("Other use", "#6cbf8c"),
    "own_waste": ("Own waste", "#e0ac3a"),
    "platform_waste": ("Platform waste", "#c2302f"),
    "unsettled": ("Not settled", "#8d9299"),
    "idle_share": ("Share of idle", "#5c9cf0"),
}
IDLE_WORDS = {
    "none": "Idle time stays on its own line.",
    "proportional": "Idle time is carried by the accounts in proportion to what they held.",
    "uniform": "Idle time is carried by the accounts that held GPUs in equal parts.",
    "by_quota": "Idle time is carried by quota; reserved idle time by the reservation's account.",
}


@dataclass(frozen=True)
class Table:
    """A table of texts: a title, what it says, its columns (True: numbers, to the right), rows.

    total: a last row that the others add up to, or None.
    """

    title: str
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    note: str = ""
    total: Sequence[str] | None = None


@dataclass(frozen=True)
class Bar:
    """One account's money by use: parts of (label, colour, dollars)."""

    label: str
    parts: Sequence[tuple[str, str, Decimal]]

    @property
    def total(self) -> Decimal:
        """Return the length of the bar."""
        return sum((usd for _, _, usd in self.parts), Decimal(0))


@dataclass(frozen=True)
class Presentation:
    """All that a page or a PDF shows of a statement, in order."""

    title: str
    subtitle: str
    status: str
    is_final: bool
    tiles: Sequence[tuple[str, str, str]]
    bars: Sequence[Bar]
    tables: Sequence[Table]
    notes: Sequence[str] = field(default=())


def present(statement: Statement, *, lines: int) -> Presentation:
    """Return a statement as it is shown, with at most so many of its lines (CSV has them all)."""
    day = statement.day
    begin, end = closing.instant(day.from_ms), closing.instant(day.to_ms)
    return Presentation(
        title=f"GPU chargeback statement, {day.date:%A} {day.date.day} {day.date:%B %Y}",
        subtitle=(
            f"{statement.settings.organisation}. Day in {day.zone}: {begin:%Y-%m-%d %H:%M} to "
            f"{end:%Y-%m-%d %H:%M} UTC, {day.hours:g} hours. Amounts in US dollars."
        ),
        status=status_of(statement),
        is_final=statement.is_closed,
        tiles=_tiles(statement),
        bars=_bars(statement),
        tables=[
            _accounts(statement),
            _comparison(statement),
            _month(statement),
            _losses(statement),
            _corrections(statement),
            _lines(statement, lines),
            _balance(statement),
            _differences(statement),
            _unmatched(statement),
        ],
        notes=_notes(statement),
    )


def money(amount: Decimal | float | None, none: str = NONE) -> str:
    """Return an amount with separators and two decimals."""
    return none if amount is None else f"{amount:,.2f}"


def hours(ms: int) -> str:
    """Return GPU milliseconds as GPU-hours with one decimal, two below ten."""
    value = ms / MS_PER_HOUR
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}"


def change(now: Decimal, before: Decimal | None) -> str:
    """Return a change in percent; a word where there is nothing to compare with."""
    if before is None:
        return "no data"
    if not before:
        return NONE if not now else "new"
    return f"{(now - before) / before * 100:+,.1f} %"


def status_of(statement: Statement) -> str:
    """Return whether the figures are final, and what that rests on."""
    reach = f"{closing.instant(statement.evidence_ms):%Y-%m-%d %H:%M} UTC"
    if not statement.is_closed:
        closes = f"{closing.instant(statement.closes_ms):%Y-%m-%d %H:%M} UTC"
        return (
            f"Open: figures may still change. The day closes when evidence of all its clusters "
            f"reaches {closes}; it reaches {reach}."
        )
    first, *corrections = statement.bookings
    words = (
        f"Closed with evidence up to {closing.instant(first.evidence_ms):%Y-%m-%d %H:%M} UTC. "
        f"Digest of what was billed: {first.digest}."
    )
    if corrections:
        count = "1 correction" if len(corrections) == 1 else f"{len(corrections)} corrections"
        return f"{words} Since then {count}; all earlier rows stand as billed."
    if not statement.is_proven:
        return (
            f"{words} Stands as billed; not computed again, since its readings were dropped by age "
            "or the database is only read from."
        )
    return f"{words} Computed again from today's evidence: unchanged."


def _tiles(statement: Statement) -> list[tuple[str, str, str]]:
    frame = statement.accounts
    of_accounts = frame.filter("is_account")
    held, capacity = int(of_accounts["gpu_ms"].sum()), int(frame["gpu_ms"].sum())
    productive = int(of_accounts["productive_ms"].sum())
    nobodys = frame.filter(~pl.col("is_account"))

    def usd(rows: pl.DataFrame, column: str) -> Decimal:
        return sum(rows[column].drop_nulls(), Decimal("0.00"))

    return [
        ("Billed" if not statement.settings.showback else "Cost", f"${money(statement.total_usd)}",
         f"{money(usd(of_accounts, 'total_usd'))} to accounts"),
        ("Held", f"{hours(held)} GPU-h", f"{_share(held, capacity)} of capacity"),
        ("Productive", f"{hours(productive)} GPU-h", f"{_share(productive, held)} of held"),
        ("Own waste", f"${money(usd(frame, 'own_waste_usd'))}", "lost for reasons of the jobs"),
        ("Platform waste", f"${money(usd(frame, 'platform_waste_usd'))}",
         "credited below" if statement.policy.credits_infra_failures else "not credited"),
        ("Nobody's", f"${money(usd(nobodys, 'held_usd'))}", "idle or not available"),
    ]  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{part / whole * 100:.1f} %" if whole else NONE


def _bars(statement: Statement) -> list[Bar]:
    """Return a bar an account, the longest first; the shortest of many are one bar together."""
    found = []
    for row in statement.accounts.filter("is_account").iter_rows(named=True):
        parts = [(*USES[name], max(row[f"{name}_usd"], Decimal(0))) for name in USES]
        bar = Bar(_of_cluster(statement, row), parts)
        if bar.total > 0:
            found.append(bar)
    found.sort(key=lambda bar: (-bar.total, bar.label))
    if len(found) <= BARS_SHOWN:
        return found
    rest = found[BARS_SHOWN - 1 :]
    sums = [
        (*use, sum((bar.parts[i][2] for bar in rest), Decimal(0)))
        for i, use in enumerate(USES.values())
    ]
    return [*found[: BARS_SHOWN - 1], Bar(f"{len(rest)} other accounts", sums)]


def _of_cluster(statement: Statement, row: dict[str, Any]) -> str:
    """Return the account, with its cluster where there are several."""
    several = statement.accounts["cluster"].n_unique() > 1
    return f"{row['account']} ({row['cluster']})" if several else str(row["account"])


def _accounts(statement: Statement) -> Table:
    names = [*(f"{name}_usd" for name in BUCKETS), "held_usd", "idle_share_usd"]
    names += ["electricity_usd", "credit_usd", "total_usd"]
    frame = statement.accounts.filter(
        pl.col("gpu_ms").cast(pl.Boolean) | (pl.col("total_usd") != 0)
    )
    rows = [
        [
            _of_cluster(statement, row),
            hours(row["gpu_ms"]),
            *(
                NONE if name[:-4] in BUCKETS and not row["is_account"]
                else money(row[name], _why_not(row))
                for name in names
            ),
            money(row["usd_per_held_gpu_h"]),
            money(row["usd_per_productive_gpu_h"]),
        ]
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip
    sums = [sum(frame[name].drop_nulls(), Decimal("0.00")) for name in names]
    if frame["electricity_usd"].null_count() == frame.height:
        sums[names.index("electricity_usd")] = None
    return Table(
        "Accounts",
        [
            ("Account", False), ("GPU-h", True), ("Productive", True), ("Other use", True),
            ("Own waste", True), ("Platform waste", True), ("Not settled", True), ("Held", True),
            ("Idle share", True), ("Electricity", True), ("Credits", True), ("Total", True),
            ("$/held GPU-h", True), ("$/productive GPU-h", True),
        ],
        rows,
        note="Productive to not settled add up to held; held, idle share, electricity and credits "
        "to the total. Unit costs are the total over held and over productive hours.",
        total=[
            "Total", hours(_gpu_ms(frame)), *(money(usd, UNKNOWN) for usd in sums), "", "",
        ],
    )  # fmt: skip


def _why_not(row: dict[str, Any]) -> str:
    """Return what stands for a missing amount: energy of reserved GPUs is among the idle's."""
    return NONE if row["account"] == NOBODYS["reserved_idle"] else UNKNOWN


def _comparison(statement: Statement) -> Table:
    frame = statement.accounts
    rows = [
        [
            _of_cluster(statement, row),
            money(row["total_usd"]),
            money(row["yesterday_usd"], "no data"),
            change(row["total_usd"], row["yesterday_usd"]),
            money(row["week_ago_usd"], "no data"),
            change(row["total_usd"], row["week_ago_usd"]),
        ]
        for row in frame.iter_rows(named=True)
    ]
    columns = [("Account", False), ("This day", True), ("The day before", True), ("Change", True)]
    sums = [
        None if frame[name].null_count() else sum(frame[name], Decimal("0.00"))
        for name in ("yesterday_usd", "week_ago_usd")
    ]
    total = statement.total_usd
    return Table(
        "Against other days",
        [*columns, ("A week before", True), ("Change", True)],
        rows,
        total=[
            "Total",
            money(total),
            *(
                text
                for before in sums
                for text in (money(before, "no data"), change(total, before))
            ),
        ],
    )


def _month(statement: Statement) -> Table:
    rows = [
        [
            row["account"],
            row["cluster"] or "all",
            money(row["month_usd"]),
            money(row["forecast_usd"]),
            money(row["budget_usd"], "no budget"),
            NONE if row["spent_ratio"] is None else f"{row['spent_ratio'] * 100:.1f} %",
            NONE if row["budget_usd"] is None or row["forecast_usd"] is None
            else "over" if row["forecast_usd"] > row["budget_usd"] else "within",
        ]
        for row in statement.budgets.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        f"{statement.day.date:%B} so far",
        [
            ("Account", False), ("Cluster", False), ("Month to date", True), ("Forecast", True),
            ("Budget", True), ("Spent", True), ("Forecast is", False),
        ],
        rows,
        note=f"Forecast: month to date / {statement.days_of_month} days with evidence x days of "
        "the month.",
    )  # fmt: skip


def _losses(statement: Statement) -> Table:
    rows = [
        [
            row["account"], row["run_id"], row["label"], row["cause"], row["blame"],
            row["confidence"], hours(row["gpu_ms"]), money(row["usd"], "no price"), row["fix"],
        ]
        for row in statement.losses.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        "Dearest losses",
        [
            ("Account", False), ("Run", False), ("Loss", False), ("Cause", False),
            ("Whose", False), ("Confidence", False), ("GPU-h", True), ("$", True), ("Fix", False),
        ],
        rows,
        note="As known now, at the day's prices.",
    )  # fmt: skip


def _corrections(statement: Statement) -> Table:
    rows = [
        [
            str(booking.number),
            f"{closing.instant(booking.evidence_ms):%Y-%m-%d %H:%M} UTC",
            str(booking.rows.height),
            money(Decimal(booking.billed_cents).scaleb(-2)),
            booking.digest,
        ]
        for booking in statement.bookings[1:]
    ]
    return Table(
        "Corrections",
        [("No.", False), ("Evidence up to", False), ("Rows", True), ("$", True), ("Digest", False)],
        rows,
        note="Evidence that came after the day had closed; the rows are in the files.",
    )


def _lines(statement: Statement, limit: int) -> Table:
    ranked = statement.rows.sort("total_usd", descending=True, nulls_last=True, maintain_order=True)
    shown, rest = ranked.head(limit), ranked.slice(limit)
    rows = [_line(row) for row in shown.iter_rows(named=True)]
    if rest.height:
        rows.append([
            f"{rest.height:,} more lines", *[""] * 6, hours(_gpu_ms(rest)),
            *(_sum(rest, name) for name in ("direct_usd", "idle_share_usd", "electricity_usd")),
            _sum(rest, "total_usd"),
        ])  # fmt: skip
    return Table(
        "Lines",
        [
            ("Account", False), ("User", False), ("Run", False), ("Partition", False),
            ("Model", False), ("MIG", False), ("$/GPU-h", True), ("GPU-h", True), ("Direct", True),
            ("Idle share", True), ("Electricity", True), ("Total", True),
        ],
        rows,
        total=[
            "Total", *[""] * 6, hours(_gpu_ms(ranked)),
            *(_sum(ranked, name) for name in ("direct_usd", "idle_share_usd", "electricity_usd")),
            _sum(ranked, "total_usd"),
        ],
    )  # fmt: skip


def _line(row: dict[str, Any]) -> list[str]:
    words = {"credit": " (credit)", "idle_share": " (idle share)"}
    mark = f" (correction {row['correction']})" if row["correction"] else ""
    price = row["usd_per_gpu_h"]
    texts = ("user_name", "run_id", "partition", "gpu_model", "mig_profile")
    return [
        f"{account_of(row)}{words.get(row['line'], '')}{mark}",
        *(row[name] or NONE for name in texts),
        "no price" if price is None else _price(price),
        hours(-row["credit_ms"] if row["line"] == "credit" else row["gpu_ms"]),
        money(row["direct_usd"], "no price"),
        money(row["idle_share_usd"]),
        money(row["electricity_usd"], UNKNOWN),
        money(row["total_usd"], "no price"),
    ]


def _price(usd: Decimal) -> str:
    """Return a price with all its decimals, two at least."""
    text = f"{usd.normalize():f}"
    return text if len(text.partition(".")[2]) >= 2 else f"{usd:.2f}"


def _gpu_ms(rows: pl.DataFrame) -> int:
    return int(rows["gpu_ms"].sum())


def _sum(rows: pl.DataFrame, name: str) -> str:
    known = rows[name].drop_nulls()
    return money(
        sum(known, Decimal("0.00")) if known.len() or name != "electricity_usd" else None, UNKNOWN
    )


def _balance(statement: Statement) -> Table:
    rows = []
    for row in statement.balance.iter_rows(named=True):
        held, free, away = row["held_ms"], row["free_ms"], row["not_available_ms"]
        rows.append([
            row["cluster"], hours(held), hours(free), hours(away), hours(row["statement_ms"]),
            hours(row["capacity_ms"] or 0), _ms_apart(row["statement_ms"], row["ledger_ms"]),
            hours(row["scheduler_held_ms"] or 0),
            _ms_apart(held, row["scheduler_held_ms"]),
        ])  # fmt: skip
    return Table(
        "It balances",
        [
            ("Cluster", False), ("Held", True), ("Free", True), ("Not available", True),
            ("Statement", True), ("Capacity", True), ("Less the ledger", True),
            ("Scheduler held", True), ("Held less the scheduler", True),
        ],
        rows,
        note="GPU-hours; differences in milliseconds. Held + free + not available = statement = "
        "capacity. What sets it apart from the scheduler is named in the next table.",
    )  # fmt: skip


def _ms_apart(ours: int, theirs: int | None) -> str:
    return NONE if theirs is None else f"{ours - theirs:,} ms"


def _differences(statement: Statement) -> Table:
    rows = [
        [row["cluster"], row["reason"], f"{row['job_runs']:,}", hours(row["gpu_ms"]),
         f"{row['gpu_ms']:,} ms"]
        for row in statement.differences.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        "What the scheduler counts otherwise",
        [
            ("Cluster", False),
            ("Reason", False),
            ("Job runs", True),
            ("GPU-h", True),
            ("Exactly", True),
        ],
        rows,
        note="Scheduler less statement. sreport besides counts resized jobs twice while their "
        "records overlap (Slurm 22.05) and knows whole hours only after they are rolled up.",
    )


def _unmatched(statement: Statement) -> Table:
    rows = [
        [row["cluster"], row["kind"], f"{row['n']:,}", hours(row["gpu_ms"]), row["what_to_do"]]
        for row in statement.unmatched.iter_rows(named=True)
    ]
    return Table(
        "Unpriced and unmatched",
        [("Cluster", False), ("What", False), ("Count", True), ("GPU-h", True), ("To do", False)],
        rows,
    )


def _notes(statement: Statement) -> list[str]:
    lacks = statement.rows["untariffed_mj"].sum()
    measured = statement.rows["energy_mj"].drop_nulls()
    electricity = (
        "Electricity is not known: no energy counter was read."
        if not measured.len()
        else "Electricity is not charged: the energy is known, a tariff is not."
        if lacks == measured.sum() != 0
        else "Electricity: differences of the GPUs' energy counters x tariff of the hour x what "
        "server and site add. GPUs without readings add none."
    )
    return [
        IDLE_WORDS[statement.policy.idle],
        "What failed infrastructure cost (node failures, hardware Xids) is credited on rows of its "
        "own." if statement.policy.credits_infra_failures
        else "What failed infrastructure cost is shown, not credited.",
        "Charged is what was held, at the price of its hour: it is what others could not use. What "
        "it was used for is shown beside it and changes nothing.",
        electricity,
        "Not available GPUs (down, drained, in maintenance, off) are the platform's; their cost is "
        "never shared out.",
        "Amounts are exact until they are printed; cents are given to the largest remainders, so "
        "that rows add up to totals everywhere.",
    ]  # fmt: skip


def empty_tables_left_out(tables: Iterable[Table]) -> list[Table]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]


__all__ = ["NOBODYS", "Bar", "Presentation", "Table", "empty_tables_left_out", "present"]
