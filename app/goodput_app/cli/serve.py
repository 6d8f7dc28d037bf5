"""Long-running commands: `goodput serve` and `goodput collect`."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import polars as pl

from goodput_app.cli.database import chosen_lake, opened_for_loading
from goodput_app.cli.deliver import plan_of
from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.cli.notify import notification_plan
from goodput_app.cli.options import (
    database_option,
    lake_option,
    output_options,
    say,
)
from goodput_app.notify.notifier import Plan as NotificationPlan
from goodput_app.server.listen import is_loopback
from goodput_app.settings import settings, settings_file
from goodput_billing.delivery.deliver import Plan
from goodput_ingest.live.config import Collector, collectors
from goodput_ingest.live.scheduler import Collection, Outcome
from goodput_ingest.live.store_lease import Held, Shared, Stores, collector_lock
from goodput_ingest.received.otlp import OtlpMetrics
from goodput_ingest.received.remote_write import RemoteWrite
from goodput_ingest.received.spool import Spool
from goodput_ingest.run.plugins import use_plugins
from goodput_queries.errors import GoodputError, IngestError
from goodput_queries.storage.opening import IN_MEMORY

Command = TypeVar("Command", bound="Callable[..., Any]")
GRACE_S = 10.0  # for batches that are under way
SIGNALS_SEEN_S = 0.5
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def insecure_option(command: Command) -> Command:
    """Add `--insecure`."""
    return click.option(
        "--insecure",
        "is_insecure",
        is_flag=True,
        default=lambda: settings().serve.insecure,
        help="Allow a non-loopback address although nobody signs in.",
    )(command)


def refuse_strangers(address: str, *, is_insecure: bool) -> None:
    """Raise GoodputError for a non-loopback address without a sign-in or `--insecure`."""
    if is_loopback(address) or settings().access.sign_in is not None:
        return
    danger = (
        f"{address} is not a loopback address: whoever reaches it reads every page and, with "
        "[ui] edit_prices, changes prices: nobody signs in."
    )
    if not is_insecure:
        raise GoodputError(
            f"{danger} Set sign_in under [access] in goodput.toml, or add --insecure."
        )
    say(f"Warning: {danger}")


@click.command()
@database_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=lambda: settings().serve.port,
    help="Port; default: 8501, or the next free one.",
)
@click.option(
    "--address",
    default=lambda: settings().serve.address,
    help="Address to listen on; default: 127.0.0.1.",
)
@insecure_option
@click.option(
    "--collect/--no-collect",
    "is_collecting",
    default=True,
    help="Poll the live sources of goodput.toml (default: yes).",
)
def serve(
    *, db: str, port: int | None, address: str, is_insecure: bool, is_collecting: bool
) -> None:
    """Serve the dashboard, /metrics and the database."""
    plan = plan_of(settings(), db) if settings().report.at is not None else None
    refuse_strangers(address, is_insecure=is_insecure)
    serve_at(
        db,
        port,
        address,
        [*configured(), *received(db)] if is_collecting else [],
        plan,
        notification_plan(settings()),
    )


@click.command()
@database_option
@lake_option
@click.option("--once", is_flag=True, help="Poll each source once and print the result (for cron).")
@output_options
def collect(*, db: str, lake: str | None, once: bool) -> pl.DataFrame:
    """Poll the live sources of goodput.toml until Ctrl-C."""
    lake = chosen_lake(lake)
    sources = configured()
    if not sources:
        raise GoodputError(
            f"{settings_file()}: no live source is named under [[collect]]; `goodput doctor` says "
            "which there are and the lines that add them."
        )
    with collector_lock(db), _stores(db, lake) as stores:
        collection = Collection(sources, stores, earliest=settings().ingest.earliest_at)
        if once:
            return _summary(collection.ask_once())
        is_over = threading.Event()
        for number in SIGNALS:
            signal.signal(number, lambda *_: is_over.set())
        collection.start()
        say(f"Polling {', '.join(one.label for one in sources)}. Ctrl-C ends it.")
        while not is_over.wait(SIGNALS_SEEN_S):  # a signal to another thread does not wake this one
            pass
        if late := collection.stop(GRACE_S):
            say(f"Still running: {', '.join(late)}.")
    raise click.exceptions.Exit  # there is no table to print


@contextlib.contextmanager
def _stores(db: str, lake: str | None) -> Iterator[Stores]:
    """Yield what polls load into: a lake, or the database where that is None."""
    if lake is None:
        with contextlib.closing(Shared(db)) as shared:
            yield shared
    else:
        with opened_for_loading(db, lake, None) as store:
            yield Held(store)


def configured() -> list[Collector]:
    """Return the live sources of the settings; raises GoodputError naming file, table and key."""
    if not settings().collect:
        return []

    ingest = settings().ingest
    try:
        use_plugins(settings().plugins.folder)
        return collectors(settings().collect, cluster=ingest.cluster, timezone=ingest.timezone)
    except IngestError as error:
        raise IngestError(f"{settings_file()}: {error}") from error


def received(db: str) -> list[Collector]:
    """Return what this server's senders post, where the settings have a token for them.

    Raises GoodputError where the token is not there, or requests have no place to wait.
    """
    if settings().receive.token() is None:
        return []
    if db == IN_MEMORY:
        raise GoodputError("[receive] needs a database in a file: requests wait beside it.")
    folder, cluster = Path(f"{db}.received"), settings().ingest.cluster
    return [
        Collector(kind(Spool(folder / kind.name), cluster=cluster), kind.name)
        for kind in (RemoteWrite, OtlpMetrics)
    ]


def serve_at(
    path: str | Path,
    port: int | None,
    address: str,
    sources: Sequence[Collector] = (),
    statements: Plan | None = None,
    notifications: NotificationPlan | None = None,
) -> None:
    """Serve a database; poll sources, deliver statements and notify in the background."""
    from goodput_app.server import asgi  # noqa: PLC0415 -- draws in streamlit's server

    asgi.serve(
        path,
        port,
        address,
        sources=sources,
        statements=statements,
        notifications=notifications,
        on_ready=click.echo,
    )


def _summary(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """Return a row a source; raises with these rows where one of them failed."""
    frame = pl.DataFrame(
        [
            {
                "source": one.collector.reads,
                "origin": one.collector.origin,
                "rows": one.rows,
                "rows_new": one.rows_new,
                "rejects": one.rejects,
                "error": one.error,
            }
            for one in outcomes
        ],
        schema_overrides={"error": pl.String},
    )
    if failed := sum(one.error is not None for one in outcomes):
        raise FailedWithRowsError(f"{failed} of {frame.height} sources failed.", frame)
    return frame
