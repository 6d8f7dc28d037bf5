"""Cached reads of the Cost page: statements by day, prices, tariffs, past deliveries.

Like `data.py`, but amounts stay Decimal to the cent. What was computed is kept until something is
loaded or built. Nothing is closed or corrected by looking.

The bill is computed of the whole site, since idle cost is shared by all: a reader of some teams is
given the rows of their accounts (an account is a team), as billed, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from goodput_app.access import audit
from goodput_app.access import rows as readers
from goodput_app.access.identity import Action
from goodput_app.access.rows import Teams
from goodput_app.dashboard.data.kept import kept
from goodput_app.dashboard.data.marts import State, of_cluster, state
from goodput_app.process.store import current_store
from goodput_app.settings import settings
from goodput_billing.delivery import archive
from goodput_billing.delivery.archive import PastStatement
from goodput_billing.render import files
from goodput_billing.statement import budgets, closing, one_account, window
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.currency import smallest_cents
from goodput_billing.statement.amounts.rows import in_cents
from goodput_billing.statement.amounts.summary import NOBODYS, SCHEMA, Days, account_of, accounts
from goodput_billing.statement.days import Day
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.several_days import together
from goodput_billing.statement.statement import policy_of, read_only, statement
from goodput_queries.errors import NotPermittedError, StoreError, stated
from goodput_queries.scope import EVERYTHING, Scope
from goodput_scenarios import measured
from goodput_scenarios.scenario import Given

DAYS_MOST = 62  # longer windows show their last days: each open one is a read of its own
LINES_DAYS_MOST = 7  # line by line a day is a hundred times what it is by account
LOADS_SHOWN = 50
FILE_MAX_BYTES = 64 << 20
BY = {"user": "user_name", "run": "run_key", "partition": "partition", "model": "gpu_model"}
PRICE_TABLES = ("rates", "rate_factors", "tariffs", "budgets")
_ALONE = Days(None, None, [])


@dataclass(frozen=True)
class Chosen:
    """How statements are shown. idle: None: as billed, or as it would be billed by the settings."""

    settings: StatementSettings
    idle: str | None = None


@dataclass(frozen=True)
class DayCost:
    """A day and its accounts (`statement.summary.SCHEMA`); closed: None while it is open."""

    day: Day
    closed: window.Closed | None
    accounts: pl.DataFrame


def chosen(idle: str | None) -> Chosen:
    """Return how statements are shown under an idle policy, None for the site's own.

    A reader of some teams sees them as billed: two policies together tell the idle cost of all.
    """
    return Chosen(settings().statement, idle if readers.teams() is None else None)


def days(scope: Scope, how: Chosen) -> list[Day]:
    """Return the days of the statement that the window touches, the last DAYS_MOST of them."""
    return window.days_of(scope.from_ms or 0, scope.to_ms or 0, how.settings, most=DAYS_MOST)


def costs(wanted: Sequence[Day], how: Chosen) -> list[DayCost]:
    """Return the accounts of these days; a day without evidence has none."""
    found = _of_all(wanted, how)
    return [replace(cost, accounts=_own(cost.accounts)) for cost in found]


def _of_all(wanted: Sequence[Day], how: Chosen) -> list[DayCost]:
    now, closed = state(), window.closed_days(current_store())
    first_ms, last_ms = _evidence_bounds(now)
    found, computed = {}, []
    for day in wanted:
        is_closed = closed.get((day.from_ms, day.to_ms))
        if is_closed is not None and how.idle is None:
            found[day] = _billed(is_closed, now[0])
        elif is_closed is not None or (day.from_ms < last_ms and first_ms < day.to_ms):
            computed.append(day)
        else:
            found[day] = pl.DataFrame(schema=SCHEMA)
    found |= dict(zip(computed, _computed(tuple(computed), how, now), strict=True))
    return [DayCost(day, closed.get((day.from_ms, day.to_ms)), found[day]) for day in wanted]


def breakdown(
    wanted: Sequence[Day], how: Chosen, by: str, cluster: str | None, team: str | None
) -> pl.DataFrame:
    """Return the rows of these days by one of BY instead of the account, which says whose.

    Columns of `window.added_up`, `account` is the key; of runs also run_id, team, user_name.
    Rounded like the lines of the statement, so that they add up to its accounts.
    """
    now, seen = state(), readers.teams()
    found = [_grouped(day, how, by, cluster, team, seen, now) for day in wanted]
    summed = window.added_up([sums for sums, _ in found])
    if by != "run":
        return summed
    names = pl.concat([names for _, names in found]).unique("account", keep="last")
    return summed.join(names, on="account", how="left", maintain_order="left")


def month(day: Day, how: Chosen) -> pl.DataFrame:
    """Return the month of each account up to a day: `statement.budgets.SCHEMA`."""
    dates = window.month_of(day, how.settings)
    known = closing.evidence(current_store())
    found = [
        known.of_day(cost.day, window.totals_of(cost.accounts))
        for cost in _of_all(dates, how)  # covered hours are of the site
        if not cost.accounts.is_empty()
    ]
    return _own(budgets.budgets(current_store(), day, found, how.settings))


def policy(day: Day, how: Chosen) -> Policy:
    """Return the policy under which a day is shown."""
    found = policy_of(current_store(), day, how.settings)
    return found if how.idle is None else replace(found, idle=how.idle)


def statement_file(
    wanted: Sequence[Day], form: str, how: Chosen, account: str | None = None, seen: Teams = None
) -> bytes:
    """Return the file that `goodput report` writes of a day, as billed or as it stands.

    Of several days it is one: every line of each, or a page of what they come to. account: of it
    alone. seen: the teams of who was offered the file, which a browser fetches in another thread:
    they get the file of an account of theirs only. Raises NotAllowedError for somebody without the
    role.
    """
    own = readers.teams() if seen is None else seen
    if own is not None and account not in own:
        raise NotPermittedError("You see the rows of your teams only; name one of their accounts.")
    store = read_only(current_store())
    made = []
    for day in wanted:
        subject = f"statement of {day.date} ({form})"
        with audit.acting(current_store(), Action.DOWNLOAD_STATEMENT, subject):
            made.append(statement(store, day.date, how.settings))
    if len(made) > 1 and form not in files.LINE_FORMATS:
        return files.page_of_days(together(store, made, account=account), form)
    if account is not None:
        made = [one_account.of_account(store, one, account) for one in made]
    found = [files.content(one, form) for one in made]
    return found[0] if len(found) == 1 else files.of_days(found, form)


def past_statements() -> list[PastStatement]:
    """Return past deliveries, newest first; raises StoreError for a damaged index."""
    readers.require_all_teams("past statements")
    return archive.past_statements(archive_folder())


def archive_folder() -> Path:
    """Return the folder of statements that went out; raises GoodputError for one in memory."""
    return settings().report.folder_for(getattr(current_store(), "path", settings().db))


def past_file(name: str) -> bytes:
    """Return a file of the archive; raises StoreError where it is gone, or none that it lists.

    Raises NotAllowedError for somebody without the role.
    """
    with audit.acting(current_store(), Action.DOWNLOAD_STATEMENT, name):
        return _past_file(name)


def _past_file(name: str) -> bytes:
    if all(name not in one.files for one in past_statements()):
        raise StoreError(f"{name!r} is not a file of a past statement.")
    path = archive_folder() / name
    with stated(StoreError, f"{path}: it cannot be read"), path.open("rb") as stream:
        content = stream.read(FILE_MAX_BYTES + 1)
    if len(content) > FILE_MAX_BYTES:
        raise StoreError(f"{path}: it is over {FILE_MAX_BYTES >> 20} MiB.")
    return content


def has_rates() -> bool:
    """Return whether anything has a price."""
    return bool(_kept("select count(*) > 0 from raw.rates", state()).item())


def rates() -> pl.DataFrame:
    """Return the rate card, prices and factors, with its validity."""
    readers.require_all_teams("prices")
    return _kept(
        """select * from raw.rates
        union all by name
        select * from raw.rate_factors
        order by cluster nulls first, gpu_model nulls first, mig_profile nulls first,
            partition nulls first, qos nulls first, valid_from_at nulls first""",
        state(),
    )


def tariffs() -> pl.DataFrame:
    """Return what a kWh costs, by hours of the day and validity."""
    readers.require_all_teams("tariffs")
    return _kept(
        "select * from raw.tariffs order by cluster nulls first, valid_from_at nulls first, "
        "from_hour",
        state(),
    )


def budget_card() -> pl.DataFrame:
    """Return what accounts may spend in a month and the GPUs kept for them, with validity."""
    readers.require_all_teams("budgets")
    return _kept(
        "select * from raw.budgets order by cluster nulls first, account, "
        "valid_from_at nulls first",
        state(),
    )


def price_loads() -> pl.DataFrame:
    """Return the last loads of prices, tariffs and budgets: when, from where, how much was new."""
    readers.require_all_teams("loads")
    tables = ", ".join(f"'{table}'" for table in PRICE_TABLES)
    return _kept(
        "select loaded_at, table_name, origin, rows, rows_new, rejects from state.ingested "
        f"where table_name in ({tables}) order by sequence desc limit {LOADS_SHOWN}",
        state(),
    )


def unpriced(scope: Scope) -> pl.DataFrame:
    """Return the kinds of GPU and job that held time without a price, most time first."""
    return _kept(
        "select cluster, gpu_model, mig_profile, partition, qos, sum(gpu_ms)::bigint as gpu_ms "
        "from marts.statement_lines where price_per_gpu_h is null and gpu_ms > 0 "
        "group by all order by gpu_ms desc, cluster, gpu_model limit 20",
        state(),
        readers.limited(replace(scope, node=None, run=None, bucket_ms=None)),
    )


def _own(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the accounts that the reader sees; of all of them for who sees all."""
    teams = readers.teams()
    if teams is None:
        return frame
    own = [account_of({"line": "usage", "team": team}) for team in teams]
    return frame.filter(pl.col("account").is_in(own))


@kept(2)
def _evidence_bounds(state: State) -> tuple[int, int]:
    """Return from when to when the ledger goes: a month has many days of which nothing is known."""
    del state
    return window.evidence_bounds(current_store())


@kept(200)
def _billed(closed: window.Closed, database: int) -> pl.DataFrame:
    del database  # for the key
    return window.billed_of(current_store(), closed)


@kept(40)
def _computed(wanted: tuple[Day, ...], how: Chosen, state: State) -> list[pl.DataFrame]:
    found = zip(wanted, _lines(wanted, state), strict=True)
    return [window.computed_of(of_day, policy(day, how)) for day, of_day in found]


@kept(40)
def _lines(wanted: tuple[Day, ...], state: State) -> list[pl.DataFrame]:
    """Return the lines of each day, read together: a read of one costs much the same."""
    del state
    return window.lines_of_days(current_store(), wanted)


@kept(40)
def _grouped(
    day: Day,
    how: Chosen,
    by: str,
    cluster: str | None,
    team: str | None,
    seen: Teams,
    state: State,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a day's rows summed by a key in the place of the account, and what runs are called."""
    rows = _rows(day, how, state)
    if cluster is not None:
        rows = rows.filter(pl.col("cluster") == cluster)
    if team is not None:
        rows = rows.filter(~pl.col("line").is_in(list(NOBODYS)), pl.col("team") == team)
    if seen is not None:
        rows = rows.filter(~pl.col("line").is_in(list(NOBODYS)), pl.col("team").is_in(list(seen)))
    key = pl.col(BY[by]).fill_null("")
    names = rows.filter(pl.col("run_key").is_not_null()).select(
        pl.col("run_key").alias("account"), "run_id", "team", "user_name"
    )
    return accounts(rows.with_columns(key.alias("team")), _ALONE), names.unique("account")


@kept(8)
def _rows(day: Day, how: Chosen, state: State) -> pl.DataFrame:
    """Return the lines of a day in cents: as billed, or as they would be."""
    del state
    store = current_store()
    booked = closing.bookings(store, day) if how.idle is None else []
    if booked:
        return pl.concat([booking.rows for booking in booked])
    charged = policy(day, how)
    return in_cents(
        closing.computed(store, day, charged), smallest=smallest_cents(charged.currency)
    )


@kept(40)
def _kept(sql: str, state: State, scope: Scope = EVERYTHING) -> pl.DataFrame:
    del state
    return current_store().read(sql, scope=scope)


def what_if_choices(scenario: str, scope: Scope) -> dict[str, str]:
    """Return what a scenario can be asked of in the window and cluster: value to label."""
    readers.require_all_teams("scenarios")
    return _choices(scenario, of_cluster(scope), state())


def what_if_measured(scenario: str, scope: Scope, of: str) -> dict[str, Given]:
    """Return the values of a scenario that the ledger knows."""
    readers.require_all_teams("scenarios")
    return _measured(scenario, of_cluster(scope), of, state())


@kept(40)
def _choices(scenario: str, scope: Scope, state: State) -> dict[str, str]:
    del state
    return measured.choices(current_store(), scenario, scope)


@kept(100)
def _measured(scenario: str, scope: Scope, of: str, state: State) -> dict[str, Given]:
    del state
    return measured.measured(current_store(), scenario, scope, of)
