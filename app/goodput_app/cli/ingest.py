"""`goodput ingest`: load files, report rejected rows and the next step."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import polars as pl

from goodput_app.cli.database import chosen_lake, opened_for_loading, progress, quoted
from goodput_app.cli.failures import FailedWithRowsError
from goodput_app.cli.options import (
    database_option,
    instant,
    lake_option,
    output_options,
    recording_options,
    say,
    zone,
)
from goodput_app.cli.skipped_files import gaps_of_files, named, skipped_files
from goodput_app.settings import settings
from goodput_app.text.units import count
from goodput_ingest.run import ingest as load
from goodput_ingest.run.plugins import use_plugins
from goodput_ingest.source import ReadOptions
from goodput_queries.database import Store

# of what these origins brought
RUNS_WITHOUT_A_NODE = """
    select run_id
    from raw.job_events as events
    inner join state.ingested as ingested on events.load_sequence = ingested.sequence
    anti join (
        select unnest([job_id, job_id_raw, job_name]) as run_id from raw.job_runs
        union all select job_id_raw from raw.job_requests
    ) using (run_id)
    group by run_id
    having count(events.host) + count(events.gpu_uuid) = 0
        and list_has_any(list(distinct ingested.origin), $1)
    order by run_id limit 100"""
# logs of one name in several folders
LOGS_OF_A_RUN = """
    select list(distinct ingested.origin order by ingested.origin) as origins
    from raw.job_events as events
    inner join state.ingested as ingested on events.load_sequence = ingested.sequence
    where events.source = 'job-log' and events.rank is null
    group by events.cluster, events.run_id, split_part(ingested.origin, '/', -1)
    having count(distinct ingested.origin) > 1 and list_has_any(origins, $1)
    order by origins limit 100"""

OF_ANOTHER = (
    "Where it is of another node or time, `goodput forget FILE` and ingest it with its own "
    "`--node` or `--observed-at`; of several endpoints of a node, with a line `# scraped_at TIME "
    "http://NODE:PORT/metrics` before each scrape, which becomes the label instance."
)


@click.command()
@click.argument("source")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@database_option
@lake_option
@recording_options
@click.option(
    "--observed-at",
    metavar="TIME",
    help="Time of a snapshot (sinfo, scontrol) or of a log without years.",
)
@click.option(
    "--node", metavar="NAME", help="Node name for kernel and job logs that do not contain one."
)
@click.option(
    "--run-id",
    metavar="ID",
    help="Run of a job log; overrides the file name, not SLURM_JOB_ID in the log.",
)
@click.option(
    "--reopen",
    "is_reopening",
    is_flag=True,
    help="Ingest files again whose readings [retention] dropped; recomputes those hours.",
)
@output_options
def ingest(
    *,
    source: str,
    paths: tuple[Path, ...],
    db: str,
    lake: str | None,
    cluster: str | None,
    timezone: str | None,
    observed_at: str | None,
    node: str | None,
    run_id: str | None,
    is_reopening: bool,
) -> pl.DataFrame:
    """Ingest files, folders or archives.

    SOURCE: the source that wrote them, such as slurm, nvml or job-events, or auto, which
    recognises each file by its content. Repeating an ingest changes nothing.
    """
    use_plugins(settings().plugins.folder)
    options = ReadOptions(
        cluster,
        zone(timezone),
        instant(observed_at),
        node,
        run_id,
        settings().ingest.earliest_at,
    )
    lake = chosen_lake(lake)
    if lake is not None and is_reopening:
        raise click.UsageError("--reopen is for a database: a lake loads what is not in it.")
    with opened_for_loading(db, lake, cluster) as store, progress() as on_progress:
        summary = load.ingest(
            store,
            source,
            paths,
            options,
            on_progress=on_progress,
            is_reopening=is_reopening,
        )
        if lake is None and summary.rows_by_table.get("job_events"):
            origins = list(summary.read_otherwise)
            _name_runs_without_a_node(store, origins)
            _name_logs_of_one_run(store, origins)
    return _reported(summary, source, paths, None if lake is not None else db)


def _name_runs_without_a_node(store: Store, origins: Sequence[str]) -> None:
    """Say of which runs in these files no GPU time is known, and what to do."""
    runs = store.read(RUNS_WITHOUT_A_NODE, [origins])["run_id"].to_list()
    if runs:
        say(
            f"Unknown GPU time of {named(runs)}: no event names its node, and no record of a "
            "scheduler its job. Ingest such records, or, of a log, `goodput forget FILE`, then "
            "ingest it with `--node NAME`."
        )


def _name_logs_of_one_run(store: Store, origins: Sequence[str]) -> None:
    """Say which of these logs and others are of one run, since they have one name."""
    for logs in store.read(LOGS_OF_A_RUN, [origins])["origins"].to_list():
        say(
            f"{named(logs)}: they count as logs of one run, by their name. Where they are of "
            "several, `goodput forget` them and ingest each with a `--run-id` of its own."
        )


def _is_in(origin: str, path: Path) -> bool:
    return origin == str(path) or origin.startswith(f"{path}/")


def _reported(
    summary: load.Summary, source: str, paths: Sequence[Path], db: str | None
) -> pl.DataFrame:
    """Return the summary as a row and say what to do next; raises where files failed.

    db: the database that was loaded; None: a lake.
    """
    skipped = list(skipped_files(summary.refused, summary.unrecognised, source))
    differing = [
        f"{origin}: {count(rows, 'row')} left out: {other} has other values for the same thing "
        f"and time. {OF_ANOTHER}"
        for (origin, other), rows in summary.differing.items()
    ]
    gaps = list(gaps_of_files([*summary.hints, *summary.gaps, *differing]))
    for sentence in (*skipped, *summary.failed, *sorted(summary.notes), *gaps):
        say(sentence)
    if summary.rejects:
        where = "" if db is None else f", see `goodput show raw.rejects --db {quoted(db)}`"
        say(f"Rejected: {count(summary.rejects, 'row')}{where}.")
    again = [origin for origin, is_otherwise in summary.read_otherwise.items() if is_otherwise]
    if again := [origin for origin in again if origin in summary.changed]:
        given = [str(path) for path in paths if any(_is_in(origin, path) for origin in again)]
        at = "" if db is None else f" --db {quoted(db)}"
        say(
            f"{named(again)}: ingested before with other options, and what that brought counts "
            f"too: `goodput forget {' '.join(map(quoted, given))}{at}`, then ingest again."
        )
    if summary.frozen:
        say(
            f"{count(len(summary.frozen), 'file')} had readings that [retention] dropped: "
            "`goodput ingest --reopen` ingests them again and recomputes their hours."
        )
    counts = {k: v for k, v in asdict(summary).items() if isinstance(v, int)}
    kinds = {k: len(getattr(summary, k)) for k in ("refused", "failed", "unrecognised")}
    frame = pl.DataFrame([{**counts, **kinds}])
    if summary.failed:
        raise FailedWithRowsError(
            f"{count(len(summary.failed), 'file')} failed unexpectedly; all others were ingested.",
            frame,
        )
    if summary.files == summary.rows == 0:
        reason = (
            "no file could be read, for the reasons above"
            if skipped
            else f"there are no files in {named(paths)}"
        )
        raise FailedWithRowsError(f"nothing was ingested: {reason}.", frame)
    if summary.refused and source != "auto":
        raise FailedWithRowsError(
            f"{count(len(summary.refused), 'file')} could not be read as {source}; "
            "all others were ingested.",
            frame,
        )
    if summary.rows == 0:
        if summary.rejects:
            raise FailedWithRowsError("nothing was ingested: every row was rejected.", frame)
        return frame
    if db is not None:
        say(f"Next: `goodput ledger --db {quoted(db)}`, or `goodput serve --db {quoted(db)}`.")
    return frame
