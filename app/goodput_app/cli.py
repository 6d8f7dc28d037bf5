"""The terminal's front door: each command calls one layer and prints what it says.

Results go to standard output, progress to standard error. A stated failure is one sentence and exit
code 1; a command that is used wrongly exits with 2.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goodput_app import (
    cli_forget,
    cli_live,
    cli_prune,
    cli_report,
    cli_retire,
    cli_what_if,
    headline,
    output,
    throttling,
)
from goodput_app.cli_left_out import left_out
from goodput_app.cli_options import (
    Commands,
    FailedWithRowsError,
    database_option,
    instant,
    limit_option,
    output_options,
    say,
    scope_options,
    zone,
)
from goodput_app.cli_scope import resolved
from goodput_app.settings import settings
from goodput_app.theme import count
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.remote import find_server
from goodput_queries.scope import Scope
from goodput_queries.store import IN_MEMORY, Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from goodput_queries.catalog import Model

COSTS = ("usd", "lost_usd", "gpu_ms", "lost_gpu_ms", "booked_gpu_ms")  # what answers are ranked by


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="goodput", message="%(prog)s %(version)s")
@click.option(
    "--debug",
    "is_debugging",
    is_flag=True,
    envvar="GOODPUT_DEBUG",
    help="Print tracebacks of unexpected errors (GOODPUT_DEBUG=1).",
)
def main(*, is_debugging: bool) -> None:
    """Where every GPU-hour went, what the waste cost, why, what to do first."""
    logging.basicConfig(handlers=[_log_handler()])  # where nothing else was set up
    if is_debugging:
        for package in ("goodput_app", "goodput_ingest", "goodput_queries"):
            logger = logging.getLogger(package)
            logger.setLevel(logging.DEBUG)
            logger.addHandler(_log_handler())
            logger.propagate = False


class _Printable(logging.Formatter):
    """Log lines that move no cursor: names in files and answers are not ours."""

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n".join(map(output.printable, lines))


def _log_handler() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable())
    return handler


@main.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Default: 8501 or the next free one.")
@click.option("--address", default=lambda: settings().serve.address, help="Default: 127.0.0.1.")
@cli_live.insecure_option
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to keep the demo database; default: the user's cache folder.",
)
@click.option(
    "--gpus",
    type=click.IntRange(min=0),
    default=512,
    show_default=True,
    help="Size of the made-up fleet beside the recorded session; 0: the recording alone.",
)
def demo(
    *, port: int | None, address: str, is_insecure: bool, folder: Path | None, gpus: int
) -> None:
    """Serve the dashboard on recorded sample data."""
    cli_live.refuse_strangers(address, is_insecure=is_insecure)
    from goodput_app.demo import demo_database  # noqa: PLC0415 -- draws in every source

    with _progress() as on_progress:
        path = demo_database(folder, gpus=gpus, on_progress=on_progress)
    if (running := find_server(path)) is not None:
        running.close()
        click.echo(running.url)
        return
    cli_live.serve_at(path, port, address)


@main.command()
@click.argument("source")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@database_option
@click.option(
    "--cluster",
    default=lambda: settings().ingest.cluster,
    metavar="NAME",
    help="Which cluster the files speak of, where they do not say.",
)
@click.option(
    "--timezone",
    default=lambda: settings().ingest.timezone,
    metavar="ZONE",
    help="Zone of times that carry none, such as Europe/Berlin.",
)
@click.option(
    "--observed-at",
    metavar="TIME",
    help="When a snapshot (sinfo, scontrol) was taken, or a log without years.",
)
@click.option("--node", metavar="NAME", help="Whose kernel log it is, where lines do not say.")
@click.option(
    "--run-id",
    metavar="ID",
    help="Run of a job log. SLURM_JOB_ID in the log wins over it, it wins over the file name.",
)
@click.option(
    "--reopen",
    "is_reopening",
    is_flag=True,
    help="Read files again whose readings [retention] dropped; hours with all readings reopen.",
)
@output_options
def ingest(
    *,
    source: str,
    paths: tuple[Path, ...],
    db: str,
    cluster: str | None,
    timezone: str | None,
    observed_at: str | None,
    node: str | None,
    run_id: str | None,
    is_reopening: bool,
) -> pl.DataFrame:
    """Read in files, folders, archives; SOURCE: a format, or `auto`."""
    import polars as pl  # noqa: PLC0415 -- `--help` needs no frames

    from goodput_ingest.run import ingest as load  # noqa: PLC0415 -- nor every source
    from goodput_ingest.source import ReadOptions  # noqa: PLC0415

    options = ReadOptions(
        cluster,
        zone(timezone),
        instant(observed_at),
        node,
        run_id,
        settings().ingest.earliest_at,
    )
    with _store(db) as store, _progress() as on_progress:
        summary = load.ingest(
            store,
            source,
            paths,
            options,
            on_progress=on_progress,
            is_reopening=is_reopening,
        )
    for sentence in (*left_out(summary.refused, summary.unrecognised, source), *summary.failed):
        say(sentence)
    if summary.rejects:
        say(
            f"Set aside: {count(summary.rejects, 'row')}, see "
            f"`goodput show raw.rejects --db {_quoted(db)}`."
        )
    if summary.frozen:
        say(
            f"{count(len(summary.frozen), 'file')} had readings that [retention] dropped: "
            "`goodput ingest --reopen` reads them again and reopens their hours."
        )
    counts = {k: v for k, v in asdict(summary).items() if isinstance(v, int)}
    kinds = {k: len(getattr(summary, k)) for k in ("refused", "failed", "unrecognised")}
    frame = pl.DataFrame([{**counts, **kinds}])
    if summary.failed:
        raise FailedWithRowsError(
            f"{count(len(summary.failed), 'file')} failed unexpectedly; all others were read.",
            frame,
        )
    if summary.files == summary.rows == 0:
        raise FailedWithRowsError(
            "nothing was read in: no file could be read as said above.", frame
        )
    if summary.refused and source != "auto":
        raise FailedWithRowsError(
            f"{count(len(summary.refused), 'file')} could not be read as {source}; all else was.",
            frame,
        )
    if summary.rows == 0:
        if not summary.rejects:
            say("There was nothing in it.")
        return frame
    say(f"Next: `goodput ledger --db {_quoted(db)}`, or `goodput serve --db {_quoted(db)}`.")
    return frame


@main.command()
@database_option
@click.option("--full", "is_full", is_flag=True, help="Everything anew, not only what changed.")
@output_options
def build(*, db: str, is_full: bool) -> pl.DataFrame:
    """Bring the ledger up to date with what was read in."""
    with _existing(db) as store:
        return store.build(is_full=is_full)


@main.command()
@database_option
@output_options
def check(db: str) -> pl.DataFrame:
    """Test the invariants; exit code 1 where one does not hold."""
    from goodput_queries.check import check as broken_rows  # noqa: PLC0415 -- draws in polars

    with built(db) as store:
        frame = broken_rows(store)
    if (broken := frame.filter(frame["violations"] > 0).height) > 0:
        raise FailedWithRowsError(
            f"{broken} of {frame.height} checks found rows: "
            f"`goodput show checks.CHECK --db {_quoted(db)}`.",
            frame,
        )
    return frame


@main.command()
@click.option(
    "--by",
    default="category",
    show_default=True,
    metavar="KEY,...",
    help="category blame team user run job attempt node gpu model cluster hour day ...",
)
@database_option
@scope_options
@output_options
def ledger(by: str, db: str, scope: Scope) -> pl.DataFrame:
    """Where the GPU-seconds went; they add up to the capacity."""
    from goodput_queries import ledger as ledgers  # noqa: PLC0415 -- draws in polars

    keys = list(dict.fromkeys(key.strip() for key in by.split(",")))
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


@main.command()
@click.argument("view", required=False)
@limit_option
@database_option
@scope_options
@output_options
def show(view: str | None, limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
    """List the views with their meaning, or print the rows of one."""
    if view is None:
        return _views()
    model = find_view(view)
    if model.layer in {"raw", "reference"}:  # which no scope restricts
        with _existing(db) as store:
            return _rows(store, model, scope, limit)
    with built(db) as store:
        return _rows(store, model, resolved(store, scope), limit)


def answer(
    name: str,
    view: str,
    meaning: str,
    when_empty: Callable[[Store, Scope], str] | None = None,
) -> None:
    """Add the command `name`: the rows of a mart, the costliest first.

    when_empty: what no row means, where that is not plain.
    """

    @main.command(name, help=meaning)
    @limit_option
    @database_option
    @scope_options
    @output_options
    def command(limit: int | None, db: str, scope: Scope) -> pl.DataFrame:
        with built(db) as store:
            scope = resolved(store, scope)
            frame = _rows(store, find_view(view), scope, limit)
            if frame.is_empty() and when_empty is not None:
                say(when_empty(store, scope))
            return frame


answer("gaps", "marts.idle_gaps", "Every idle gap: where, whose, why, what it cost.")
answer(
    "throttling",
    "marts.throttle_episodes",
    "Slowed GPUs and what they cost their runs.",
    when_empty=lambda store, scope: throttling.empty_meaning(
        store.read(throttling.SOURCES, scope=scope)
    ),
)
answer("stragglers", "marts.stragglers", "Late ranks and what waiting for them cost.")
answer("hangs", "marts.hangs", "Collectives that never ended, and whom the others waited for.")
answer("runs", "marts.runs", "Every run with its goodput.")


for command in (
    cli_report.report,
    cli_what_if.what_if,
    cli_live.serve,
    cli_live.collect,
    cli_live.doctor,
    cli_retire.retire,
    cli_forget.forget,
    cli_prune.prune,
):
    main.add_command(command)


def find_view(name: str) -> Model:
    """Return the catalogued table or view of a name, with or without its layer.

    Raises QueryError for a name that is not ours or belongs to several layers.
    """
    known = _catalogue()
    if name in known:
        return known[name]
    same = [model for model in known.values() if model.name == name]
    if len(same) == 1:
        return same[0]
    if same:
        names = ", ".join(model.qualified_name for model in same)
        raise QueryError(f"{name!r} is the name of several views: {names}. Name the layer too.")
    near = difflib.get_close_matches(name, [*known, *(m.name for m in known.values())], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise QueryError(f"there is no view {name!r}.{hint} `goodput show` lists them all.")


def _catalogue() -> dict[str, Model]:
    from goodput_queries import catalog  # noqa: PLC0415 -- reads every SQL file

    layers = [layer for layer in catalog.LAYERS if layer != catalog.TEMP_LAYER]
    found = {m.qualified_name: m for layer in layers for m in catalog.models(layer).values()}
    for name in catalog.reference_files():
        fact = catalog.Model("reference", name, "", "Facts; see the CSV of that name.", {}, {})
        found.setdefault(fact.qualified_name, fact)
    return found


def _views() -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 -- `--help` needs no frames

    layers = ("marts", "checks", "intermediate", "staging", "reference", "raw")
    models = sorted(_catalogue().values(), key=lambda m: (layers.index(m.layer), m.name))
    return pl.DataFrame(
        [
            {"view": m.qualified_name, "meaning": m.description, "grain": ", ".join(m.grain)}
            for m in models
        ]
    )


def _rows(store: Store, model: Model, scope: Scope, limit: int | None) -> pl.DataFrame:
    """Return the rows of a view, the costliest first where it knows cost, then by its grain."""
    columns = set(store.read(f"select * from {model.qualified_name} limit 0", scope=scope).columns)
    ranked = [f"{name} desc nulls last" for name in COSTS if name in columns]
    ranked += [f'"{name}"' for name in model.grain if name in columns]
    order = f" order by {', '.join(ranked)}" if ranked else ""
    rows = " limit $1" if limit else ""
    found = store.read(
        f"select * from {model.qualified_name}{order}{rows}",
        [limit] if limit else None,
        scope=scope,
    )
    if found.is_empty() and (scope.from_ms, scope.to_ms) != (None, None):
        say(f"Nothing in this window{_extent(store)}.")
    return found


@contextlib.contextmanager
def _store(db: str) -> Iterator[Store]:
    with contextlib.closing(
        open_store(db, evaluation_counts=settings().evaluation_counts)
    ) as store:
        yield store


@contextlib.contextmanager
def _existing(db: str) -> Iterator[Store]:
    """Yield a database that is there: a question makes no empty one."""
    if db != IN_MEMORY and not Path(db).exists():
        raise StoreError(
            f"{db}: there is no such database. Make it with "
            f"`goodput ingest auto PATH --db {_quoted(db)}`, or look at `goodput demo`."
        )
    with _store(db) as store:
        yield store


@contextlib.contextmanager
def built(db: str) -> Iterator[Store]:
    """Yield a database whose ledger holds everything that was read in."""
    with _existing(db) as store:
        store.build()
        yield store


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[Path, int], None]]:
    """Yield what shows the file and the rows so far on a terminal's standard error."""
    from rich.console import Console  # noqa: PLC0415 -- `--help` needs no colours
    from rich.progress import Progress, SpinnerColumn, TextColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=None)

        def on_progress(path: Path, rows: int) -> None:
            bar.update(task, advance=rows, description=str(Text(output.printable(str(path)))))

        yield on_progress


def _balance(store: Store, scope: Scope, ledger_ms: int) -> str:
    """Return what the ledger adds up to, the capacity beside it, and goodput."""
    from goodput_queries.ledger import capacity_ms  # noqa: PLC0415 -- draws in polars

    (row,) = store.read("select * from marts.goodput_summary", scope=scope).to_dicts()
    total = f"Ledger {output.cell('gpu_s', ledger_ms / 1000)} GPU-s"
    if ledger_ms == 0:
        return f"{total}: nothing in this scope{_extent(store)}."
    if not any((scope.team, scope.user, scope.run, scope.partition)):
        inventory_ms = capacity_ms(store, scope)
        total += f", capacity {output.cell('gpu_s', inventory_ms / 1000)} GPU-s: "
        total += "it balances" if inventory_ms == ledger_ms else "IT DOES NOT BALANCE"
    window = Scope(scope.from_ms, scope.to_ms, scope.cluster)  # finer filters change no rung
    (ladder,) = store.read("select * from marts.evidence_ladder", scope=window).to_dicts()
    return f"{total}. {headline.headline(row, ladder, scope).sentence}"


def _extent(store: Store) -> str:
    """Return the window of the data as an aside; nothing where there is none."""
    row = store.read("select min(first_at) as a, max(as_of_at) as b from marts.clusters").row(0)
    first, last = (output.cell("at", at) for at in row)
    return "" if row[0] is None else f" (data: {first} to {last})"


def _quoted(path: str) -> str:
    return shlex.quote(str(path))
