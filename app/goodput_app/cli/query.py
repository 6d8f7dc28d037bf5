"""Commands that answer from the ledger: build, check, ledger, gaps, throttling, runs ..."""

from collections.abc import Callable
from difflib import get_close_matches

import click
import polars as pl

from goodput_app.cli import output
from goodput_app.cli.database import built, existing, quoted
from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.cli.options import (
    answer_options,
    database_option,
    output_options,
    rows_options,
    say,
)
from goodput_app.cli.views import extent, nothing_ingested, rows_of
from goodput_app.text import headline
from goodput_app.text.throttling import SOURCES, empty_meaning
from goodput_app.text.units import count
from goodput_queries import ledger as ledgers
from goodput_queries.catalog.find import find_view
from goodput_queries.check import check as broken_rows
from goodput_queries.database import Store
from goodput_queries.names import resolved
from goodput_queries.scope import Scope


@click.command()
@database_option
@output_options
def check(db: str) -> pl.DataFrame:
    """Test the invariants; exit code 1 if one fails."""
    with existing(db) as store:
        store.build()
        frame = broken_rows(store)
    if (broken := frame.filter(frame["violations"] > 0).height) > 0:
        raise FailedWithRowsError(
            f"{broken} of {frame.height} checks found rows: "
            f"`goodput show checks.CHECK --db {quoted(db)}`.",
            frame,
        )
    return frame


@click.command()
@click.option(
    "--by",
    default="category",
    show_default=True,
    metavar="KEY,...",
    help="Keys to group by, such as team,category; see above.",
)
@answer_options
def ledger(by: str, db: str, scope: Scope) -> pl.DataFrame:
    """Show where the GPU time went; the rows add up to the capacity.

    Keys of --by: category phase blame cluster node gpu model team account user run attempt job
    partition qos hour day.
    """
    keys = list(dict.fromkeys(key.strip() for key in by.split(",")))
    for key in keys:
        if key not in ledgers.KEYS:
            near = "".join(
                f" Did you mean {one}?" for one in get_close_matches(key, ledgers.KEYS, 1)
            )
            known = ", ".join(ledgers.KEYS)
            raise click.UsageError(f"the ledger has no key {key!r}.{near} Known: {known}.")
    with built(db) as store:
        scope = resolved(store, scope)
        frame = ledgers.ledger(store, by=keys, scope=scope)
        if click.get_current_context().params["form"] in {None, "table"}:
            say(_balance(store, scope, int(frame["gpu_ms"].sum())))
            if unplaced := ledgers.unplaced_ms(store, scope):
                say(
                    f"Allocated, but on no known GPU: {output.cell('gpu_s', unplaced / 1000)} "
                    "GPU-s, outside capacity: `goodput show unplaced`."
                )
    return frame


def answer(
    name: str,
    view: str,
    meaning: str,
    when_empty: Callable[[Store, Scope], str] | None = None,
) -> click.Command:
    """Return the command `name`: the rows of a mart, the highest cost first.

    when_empty: what no row means, where that is not plain.
    """

    @click.command(name, help=meaning)
    @rows_options
    def command(limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
        with built(db) as store:
            scope = resolved(store, scope)
            frame = rows_of(store, find_view(view), scope, limit)
            _say_why_empty(store, scope, frame, db, when_empty)
            return frame

    return command


def _say_why_empty(
    store: Store,
    scope: Scope,
    frame: pl.DataFrame,
    db: str,
    when_empty: Callable[[Store, Scope], str] | None,
) -> None:
    if not frame.is_empty():
        return
    if sentence := nothing_ingested(store, db):
        say(sentence)
    elif when_empty is not None:
        say(when_empty(store, scope))


gaps = answer("gaps", "marts.idle_gaps", "List idle gaps with place, owner, cause and cost.")


@click.command()
@click.option(
    "--all", "is_all", is_flag=True, help="Also episodes at the power cap that are no loss."
)
@rows_options
def throttling(*, is_all: bool, limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
    """List throttled GPUs and the cost for their runs."""
    with built(db) as store:
        scope = resolved(store, scope)
        found = rows_of(store, find_view("marts.throttle_episodes"), scope, None)
        frame = found if is_all else found.filter("counts_as_loss")
        if harmless := found.height - frame.height:
            say(f"{count(harmless, 'episode')} at the power cap, none a loss: --all lists them.")
        else:
            _say_why_empty(store, scope, frame, db, _no_throttling)
        return frame.head(limit) if limit else frame


def _no_throttling(store: Store, scope: Scope) -> str:
    return empty_meaning(store.read(SOURCES, scope=scope))


stragglers = answer(
    "stragglers", "marts.stragglers", "List stragglers and the cost of waiting for them."
)
hangs = answer(
    "hangs",
    "marts.hangs",
    "List hung collectives and the ranks that others waited for.",
    when_empty=lambda _store, _scope: (
        "No hang is known: Flight Recorder dumps, answers of NCCL RAS or lines of the NCCL "
        "watchdog in job logs are needed to see one."
    ),
)
runs = answer("runs", "marts.runs", "List runs with their goodput.")


def _balance(store: Store, scope: Scope, ledger_ms: int) -> str:
    """Return the sum of the ledger, the capacity and goodput."""
    (row,) = store.read("select * from marts.goodput_summary", scope=scope).to_dicts()
    total = f"Ledger {output.cell('gpu_s', ledger_ms / 1000)} GPU-s"
    if ledger_ms == 0:
        if data := extent(store):
            return f"{total}: no rows in this scope{data}."
        listed = store.read("select count(distinct gpu_uuid) from raw.gpus").item()
        if listed:
            return (
                f"{total}: {count(listed, 'GPU')} listed, and no source says of any time what they "
                "did; add accounting, node states or readings."
            )
        return (
            f"{total}: no GPU of a node is known; `goodput show data_quality` says what is missing."
        )
    if not _is_filtered(scope):
        inventory_ms = ledgers.capacity_ms(store, scope)
        total += f", capacity {output.cell('gpu_s', inventory_ms / 1000)} GPU-s: "
        total += "it balances" if inventory_ms == ledger_ms else "IT DOES NOT BALANCE"
    window = Scope(scope.from_ms, scope.to_ms, scope.cluster)  # finer filters change no rung
    (ladder,) = store.read("select * from marts.evidence_ladder", scope=window).to_dicts()
    return f"{total}. {headline.headline(row, ladder, scope).sentence}{_precision(store, scope)}"


def _precision(store: Store, scope: Scope) -> str:
    """Return how exact active and idle time are, where readings show a change between them."""
    if _is_filtered(scope):
        return ""
    found = store.read(
        "select sum(changes)::bigint as changes, sum(gpu_ms)::bigint as gpu_ms, "
        "max(interval_s) as interval_s, max(unseen_s) as unseen_s "
        "from marts.reading_precision having count(*) > 0",
        scope=scope,
    )
    return "".join(f" {headline.precision(row)}" for row in found.iter_rows(named=True))


def _is_filtered(scope: Scope) -> bool:
    """Say whether a scope leaves out GPU time that the inventory has."""
    return any((scope.team, scope.user, scope.run, scope.partition))
