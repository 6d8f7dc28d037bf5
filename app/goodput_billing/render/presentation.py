"""A statement as people read it: words, tables and bars, the same for the page and the PDF."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from typing import Any, cast
from unicodedata import category

import polars as pl

from goodput_billing.render.tables import tables, tables_of_days
from goodput_billing.render.wording import Table, account_name, hours, money, percent
from goodput_billing.statement.amounts.currency import decimals, sign
from goodput_billing.statement.amounts.ownership import HELD_LINES, UNPLACED
from goodput_billing.statement.several_days import SeveralDays
from goodput_billing.statement.statement import Statement
from goodput_queries.scope import utc_at

BARS_SHOWN = 20
CONTROLS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # categories of what is not to be seen
USES = {
    "productive": ("Useful", "#159a5c"),
    "other_use": ("Other use", "#6cbf8c"),
    "own_waste": ("Team-caused waste", "#e0ac3a"),
    "platform_waste": ("Infrastructure-caused waste", "#c2302f"),
    "unsettled": ("Unclassified", "#8d9299"),
    "idle_share": ("Share of idle", "#5c9cf0"),
}
IDLE_WORDS = {
    "none": "Idle time stays on its own line.",
    "proportional": "Idle cost is allocated to the accounts in proportion to their usage.",
    "uniform": "Idle cost is split evenly among the accounts that used GPUs.",
    "by_quota": "Idle time is carried by quota; reserved idle time by the reservation's account.",
}


@dataclass(frozen=True)
class Bar:
    """One account's money by use: parts of (label, colour, amount)."""

    label: str
    parts: Sequence[tuple[str, str, Decimal]]

    @property
    def total(self) -> Decimal:
        """Return the length of the bar."""
        return sum((cost for _, _, cost in self.parts), Decimal(0))


@dataclass(frozen=True)
class Presentation:
    """All that a page or a PDF shows of a statement, in order.

    sign, decimals: of its amounts.
    """

    title: str
    sign: str
    decimals: int
    subtitle: str
    status: str
    is_final: bool
    tiles: Sequence[tuple[str, str, str]]
    bars: Sequence[Bar]
    tables: Sequence[Table]
    notes: Sequence[str] = field(default=())


def present(of: Statement | SeveralDays, *, lines: int) -> Presentation:
    """Return what is shown of a day or several, with at most so many lines (CSV has them all)."""
    found = _days(of, lines) if isinstance(of, SeveralDays) else _day(of, lines)
    return cast("Presentation", _visible(found))


def _day(statement: Statement, lines: int) -> Presentation:
    day = statement.day
    return Presentation(
        title=f"{_whose(statement)}, {day.date:%A} {day.date.day} {day.date:%B %Y}",
        subtitle=_when(statement, f"Day in {day.zone}", f", {day.hours:g} hours"),
        status=status_of(statement),
        is_final=statement.is_closed,
        tables=tables(statement, lines=lines),
        notes=_notes(statement),
        **_money_of(statement, f"{day.date}"),
    )


def _days(several: SeveralDays, lines: int) -> Presentation:
    whole, days = several.whole, several.days
    return Presentation(
        title=f"{_whose(whole)}, {several.period}",
        subtitle=_when(whole, f"Days in {whole.day.zone}", ""),
        status=status_of_days(days, several.missing),
        is_final=several.is_closed,
        tables=tables_of_days(several, lines=lines),
        # a policy that changed has a note for each of both
        notes=list(
            dict.fromkeys(note for one in days for note in _notes(replace(one, rows=whole.rows)))
        ),
        **_money_of(whole, several.period),
    )


def _money_of(statement: Statement, period: str) -> dict[str, Any]:
    is_all = statement.account is None
    return {
        "sign": sign(statement.policy.currency),
        "decimals": decimals(statement.policy.currency),
        "tiles": _tiles(statement) if is_all else _tiles_of_account(statement, period),
        "bars": _bars(statement),
    }


def _whose(statement: Statement) -> str:
    whose = "" if statement.account is None else f" of account {statement.account}"
    return f"GPU chargeback statement{whose}"


def _when(statement: Statement, what: str, length: str) -> str:
    begin, end = utc_at(statement.day.from_ms), utc_at(statement.day.to_ms)
    return (
        f"{statement.settings.organisation}. {what}: {begin:%Y-%m-%d %H:%M} to "
        f"{end:%Y-%m-%d %H:%M} UTC{length}. Amounts in {statement.policy.currency}."
    )


def status_of_days(days: Sequence[Statement], missing: int) -> str:
    """Return how many days are final, and how many more have no evidence."""
    closed = sum(one.is_closed for one in days)
    words = [f"{closed} of {len(days)} days are closed."]
    if closed < len(days):
        words.append("Figures of the others may still change.")
    if missing:
        whole = len(days) + missing
        words.append(f"There is no evidence of {missing} of {whole} days.")
    return " ".join(words)


def _visible(shown: Any) -> Any:
    """Return what is shown with the controls in its texts spelt out: names are not ours.

    One that turns the direction of writing would show an amount or a name backwards.
    """
    if isinstance(shown, str):
        return "".join(f"\\u{ord(c):04x}" if category(c) in CONTROLS else c for c in shown)
    if isinstance(shown, list | tuple):
        return type(shown)(map(_visible, shown))
    if is_dataclass(shown) and not isinstance(shown, type):
        found = {field.name: _visible(getattr(shown, field.name)) for field in fields(shown)}
        return replace(shown, **found)
    return shown


def status_of(statement: Statement) -> str:
    """Return whether the figures are final, and what that rests on."""
    reach = f"{utc_at(statement.evidence_ms):%Y-%m-%d %H:%M} UTC"
    if not statement.is_closed:
        closes = f"{utc_at(statement.closes_ms):%Y-%m-%d %H:%M} UTC"
        return (
            f"Open: figures may still change. The day closes when evidence of all its clusters "
            f"reaches {closes}; it reaches {reach}."
        )
    first, *corrections = statement.bookings
    words = (
        f"Closed with evidence up to {utc_at(first.evidence_ms):%Y-%m-%d %H:%M} UTC. "
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
    unplaced = int(statement.rows.filter(pl.col("line") == UNPLACED)["gpu_ms"].sum())
    share = percent(held - unplaced, capacity - unplaced)
    to_accounts = sum(of_accounts["total_cost"], Decimal("0.00"))
    return [
        _total_tile(statement, f"{money(to_accounts, code=statement.policy.currency)} to accounts"),
        ("Allocated", f"{hours(held)} GPU-h", f"{share} of capacity"),
        *_use_tiles(statement, of_accounts),
        ("Unallocated", _amount(statement, frame.filter(~pl.col("is_account")), "allocated_cost"),
         "idle or not available"),
    ]  # fmt: skip


def _tiles_of_account(statement: Statement, period: str) -> list[tuple[str, str, str]]:
    """Return the tiles without data of others: capacity and idle time."""
    frame = statement.accounts
    runs = statement.rows.filter(pl.col("line").is_in(HELD_LINES))["run_key"].n_unique()
    return [
        _total_tile(statement, period),
        ("Allocated", f"{hours(int(frame['gpu_ms'].sum()))} GPU-h", f"by {runs:,} runs"),
        *_use_tiles(statement, frame),
        ("Share of idle", _amount(statement, frame, "idle_share_cost"), "carried by policy"),
    ]


def _total_tile(statement: Statement, more: str) -> tuple[str, str, str]:
    name = "Cost" if statement.settings.showback else "Billed"
    return (name, _money(statement, statement.total_cost), more)


def _use_tiles(statement: Statement, frame: pl.DataFrame) -> list[tuple[str, str, str]]:
    held, productive = int(frame["gpu_ms"].sum()), int(frame["productive_ms"].sum())
    is_credited = statement.policy.credits_infra_failures
    return [
        ("Useful", f"{hours(productive)} GPU-h", f"{percent(productive, held)} of allocated"),
        ("Team-caused waste", _amount(statement, frame, "own_waste_cost"),
         "lost for reasons of the jobs"),
        ("Infrastructure-caused waste", _amount(statement, frame, "platform_waste_cost"),
         "credited below" if is_credited else "not credited"),
    ]  # fmt: skip


def _amount(statement: Statement, frame: pl.DataFrame, column: str) -> str:
    cost = sum(frame[column].drop_nulls(), Decimal("0.00"))
    return _money(statement, cost)


def _money(statement: Statement, amount: Decimal) -> str:
    code = statement.policy.currency
    return f"{sign(code)}{money(amount, code=code)}"


def _bars(statement: Statement) -> list[Bar]:
    """Return a bar an account, the longest first; the shortest of many are one bar together."""
    found = []
    for row in statement.accounts.filter("is_account").iter_rows(named=True):
        parts = [(*USES[name], max(row[f"{name}_cost"], Decimal(0))) for name in USES]
        bar = Bar(account_name(statement, row), parts)
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


def _notes(statement: Statement) -> list[str]:
    return [
        IDLE_WORDS[statement.policy.idle],
        "What failed infrastructure cost (node failures, hardware Xids) is credited on rows of its "
        "own." if statement.policy.credits_infra_failures
        else "What failed infrastructure cost is shown, not credited.",
        "Charged is allocated time, at the price of its hour: it is what others could not use. "
        "What it was used for is shown beside it and changes nothing.",
        _of_useful(statement),
        _of_electricity(statement.rows),
        "Not available GPUs (down, drained, in maintenance, off) are the platform's; their cost is "
        "never shared out.",
        "Amounts are exact until they are printed; cents are given to the largest remainders, so "
        "that rows add up to totals everywhere.",
    ]  # fmt: skip


def _of_useful(statement: Statement) -> str:
    policy = statement.policy
    communication = "with" if policy.definition_version > 1 else "without"
    evaluation = " and declared evaluation" if policy.evaluation_counts else ""
    return (
        f"Useful is retained training step time, {communication} communication, less throttling "
        f"and straggler waits{evaluation}: definition {policy.definition_version} of goodput."
    )


def _of_electricity(rows: pl.DataFrame) -> str:
    has_meters = rows["wall_mj"].is_not_null().any()
    if not has_meters and not rows["energy_mj"].is_not_null().any():
        return "Electricity is not known: no energy counter, power or meter was read."
    if not rows["electricity_cost"].is_not_null().any():
        return "Electricity is not charged: the energy is known, a tariff is not."
    words = (
        "Electricity: differences of the GPUs' energy counters (without one the integral of their "
        "power) x tariff of the hour x what server and site add. GPUs without readings add none."
    )
    if not has_meters:
        return words
    return (
        f"{words} In hours that a node's power meter covers whole, and where GPUs have no "
        "readings in what it covers, its energy is charged instead: to each GPU its own, and the "
        "rest of the node by GPU time; only what the site adds comes on top."
    )
