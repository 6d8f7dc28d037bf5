"""`sacct -P`: a row a record, a record a start of a job; rows of its steps where they are given.

The header names the fields: any order, either release, fields that are missing are null. Times are
kept as the accounting has them: that a resized record repeats the first one's start is for SQL.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats.parsed import INSTANT, TEXT_MAX_CHARS, Parsed
from goodput_ingest.formats.timestamps import instants, seconds
from goodput_ingest.sources.slurm import node_lists, repeated_hours, requests
from goodput_ingest.sources.slurm.features import feature_sets
from goodput_ingest.sources.slurm.fields import (
    COMMAND,
    FIELDS,
    FREE_TEXTS,
    REQUIRED,
    TEXTS,
    TIMES,
    XDMOD,
)
from goodput_queries.errors import IngestError
from goodput_queries.evidence.batch import REJECT_CONTENT_MAX_CHARS, Reject

TRACKED = "gres/gpu"
_STATE = r"^\s*([A-Za-z_]+)\+?(?:\s|$)"
_JOB_ID = r"^[0-9]"
_PRINTED_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\S*|Unknown|None"
_TYPED = r"(?:^|,)gres/gpu:([^=,]+)=([0-9]{1,9})(?:,|$)"
_TYPED_ENTRY = r"(?:^|,)gres/gpu:[^=,]+="


@dataclass(frozen=True)
class Accounting:
    """Context of the rows that they do not contain.

    tracks_gpus: accounting names GPUs somewhere, so that a record without them had none.
    """

    cluster: str | None = None
    zone: ZoneInfo | None = None
    observed_at: datetime | None = None
    tracks_gpus: bool = False

    def tracking(self, rows: pl.DataFrame) -> "Accounting":
        """Return the same, which tracks GPUs where one of these rows names any."""
        return replace(self, tracks_gpus=self.tracks_gpus or names_gpus(rows))


def require_fields(names: Sequence[str]) -> None:
    """Raise IngestError where a field is missing without which no record can be placed in time."""
    missing = [name for name in REQUIRED if name not in names]
    if not {"JobID", "JobIDRaw"} & set(names):
        missing.insert(0, "JobIDRaw")
    if missing:
        raise IngestError(
            f"slurm: the sacct header lacks {', '.join(missing)}. Ask for it and read the file "
            f"again: `{COMMAND}`."
        )


def lacking(names: Sequence[str]) -> list[Reject]:
    """Return the reject of a header without the field that says which GPUs a job had."""
    if "AllocTRES" in names:
        return []
    before = "; AllocGRES of earlier releases is not read" if "AllocGRES" in names else ""
    reason = f"the sacct header lacks AllocTRES: how many GPUs jobs had is not known{before}"
    return [Reject(1, reason, "|".join(names)[:REJECT_CONTENT_MAX_CHARS])]


def is_last_free(names: Sequence[str]) -> bool:
    """Say whether the last field, and no other, is free text: it may contain the delimiter."""
    return [name for name in names if name in FREE_TEXTS] == [*names[-1:]]


def is_xdmod_row(cells: Sequence[str]) -> bool:
    """Say whether a line without a header is in Open XDMoD's layout, by its times and its state.

    The job name stands last, and may hold what stands between the fields.
    """
    if len(cells) < len(XDMOD):
        return False
    row = dict(zip(XDMOD, cells, strict=False))
    times = all(re.fullmatch(_PRINTED_TIME, row[name]) for name in TIMES)
    return times and bool(re.match(_JOB_ID, row["JobID"]) and re.match(_STATE, row["State"]))


def names_gpus(rows: pl.DataFrame) -> bool:
    """Say whether any record names GPUs, so that accounting tracks them (AccountingStorageTRES)."""
    columns = [c for c in ("AllocTRES", "ReqTRES") if c in rows.columns]
    return any(bool(rows[c].str.contains(TRACKED, literal=True).any()) for c in columns)


def parse(rows: pl.DataFrame, accounting: Accounting, delimiter: str) -> list[Parsed]:
    """Return `raw.job_runs` and, where there are such, steps and requests from rows of text.

    Rows carry `line` and the fields of sacct under its own names. Raises IngestError where the
    cluster or the zone of the times is missing.
    """
    printed = [c for c in rows.columns if c != "line"]
    job_id = "JobID" if "JobID" in rows.columns else "JobIDRaw"
    texts = [c for c in (*TEXTS, "Cluster", "JobID", "JobIDRaw") if c in rows.columns]
    known = rows.with_columns(
        pl.lit(None, dtype=pl.String).alias(name) for name in FIELDS.keys() - set(rows.columns)
    )
    known = known.with_columns(
        pl.col(job_id).alias("JobID"),
        pl.when(pl.col("JobIDRaw").fill_null("") == "")
        .then(pl.col(job_id))
        .otherwise("JobIDRaw")
        .alias("JobIDRaw"),
        _first_known("Cluster", accounting.cluster),
    )
    if known.height and known["Cluster"].null_count():
        raise IngestError(
            "slurm: the sacct rows do not name their cluster. Name it with --cluster, "
            "or ask sacct for the field Cluster."
        )
    long = [c for c in texts if (known[c].str.len_bytes() > TEXT_MAX_CHARS).any()]
    known = known.with_columns(pl.col(long).str.head(TEXT_MAX_CHARS))
    known, problems = _with_times(known, accounting.zone)
    known, problem = node_lists.with_nodes(known)
    problems += [*_record_problems(), problem]
    known = known.with_columns(pl.coalesce(problems).alias("problem"))
    rejects = _rejects(repeated_hours.unsettled(known), printed, delimiter)
    if known["problem"].null_count() < known.height:  # to filter is to copy
        rejects += _rejects(known.filter(pl.col("problem").is_not_null()), printed, delimiter)
        known = known.filter(pl.col("problem").is_null())
    is_step = pl.col("JobID").str.contains(".", literal=True)
    has_steps = known.select(is_step.any()).item()
    runs = known.filter(~is_step) if has_steps else known
    parsed = [Parsed("job_runs", _job_runs(runs, accounting), rejects)]
    if has_steps:
        parsed.append(Parsed("job_steps", _job_steps(known.filter(is_step), accounting)))
    asked = runs.filter(
        pl.col("Constraints").fill_null("") != "", pl.col("ReqTRES").str.contains(TRACKED)
    )
    return parsed if asked.is_empty() else [*parsed, _job_requests(asked)]


def _first_known(column: str, otherwise: str | None) -> pl.Expr:
    return (
        pl.when(pl.col(column).fill_null("") == "")
        .then(pl.lit(otherwise, dtype=pl.String))
        .otherwise(column)
        .alias(column)
    )


def _with_times(rows: pl.DataFrame, zone: ZoneInfo | None) -> tuple[pl.DataFrame, list[pl.Expr]]:
    """Return the rows with their times read, and for each time what was wrong with it."""
    texts = rows.select(list(TIMES))
    for name in TIMES:
        at, problem = instants(rows[name], zone)
        rows = rows.with_columns(at, problem.alias(f"{name} problem"))
    rows = repeated_hours.settled(rows, texts, zone)
    return rows, [pl.format("slurm: {} {}.", pl.lit(name), f"{name} problem") for name in TIMES]


def _record_problems() -> list[pl.Expr]:
    """Return what makes a record unusable; an ending before its beginning held nothing anyway."""
    is_step = pl.col("JobID").str.contains(".", literal=True)
    begin = pl.when(is_step).then("Start").otherwise(pl.max_horizontal("Start", "Submit"))

    def problem(is_wrong: pl.Expr, text: str, column: str) -> pl.Expr:
        shown = pl.col(column).cast(pl.String).fill_null("").str.head(40)
        return pl.when(is_wrong).then(pl.format(f"slurm: {text}", shown))

    return [
        problem(~pl.col("JobID").fill_null("").str.contains(_JOB_ID), "'{}' is no JobID.", "JobID"),
        problem(~pl.col("State").fill_null("").str.contains(_STATE), "'{}' is no State.", "State"),
        problem(~is_step & pl.col("Submit").is_null(), "a job has Submit '{}'.", "Submit"),
        problem(pl.col("End") < begin, "End {} lies before Start or Submit.", "End"),
    ]


def _rejects(rows: pl.DataFrame, printed: list[str], delimiter: str) -> list[Reject]:
    content = pl.concat_str(pl.col(printed).cast(pl.String).fill_null(""), separator=delimiter)
    found = rows.select("line", "problem", content.str.head(REJECT_CONTENT_MAX_CHARS).alias("row"))
    return [Reject(line, problem, row) for line, problem, row in found.iter_rows()]


def _gpus(tres: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the number of GPUs of a TRES text and their type.

    `gres/gpu=N` is the total and `gres/gpu:type=` repeats a part of it: the types are summed only
    without a total, and name the type only where there is one for all.
    """
    text = pl.col(tres)
    total = text.str.extract(r"(?:^|,)gres/gpu=([0-9]{1,9})(?:,|$)").cast(pl.Int64)
    typed = text.str.extract(_TYPED, 2).cast(pl.Int64)
    types = text.str.count_matches(_TYPED_ENTRY)
    sum_of_types = (
        text.str.extract_all(r"gres/gpu:[^=,]+=[0-9]{1,9}")
        .list.eval(pl.element().str.extract(r"=([0-9]+)$").cast(pl.Int64))
        .list.sum()
    )
    gpus = pl.coalesce(total, pl.when(types == 1).then(typed).when(types > 1).then(sum_of_types))
    gpu_type = pl.when((types == 1) & (typed == gpus)).then(text.str.extract(_TYPED, 1))
    return gpus, gpu_type


def _by_text(rows: pl.DataFrame, column: str, **read: pl.Expr) -> pl.DataFrame:
    """Return what is read from the texts of a column: each distinct text, mostly few, once."""
    distinct = rows.select(pl.col(column).unique()).with_columns(**read)
    joined = rows.select(column).join(
        distinct, on=column, how="left", maintain_order="left", nulls_equal=True
    )
    return joined.drop(column)


def _tres(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return `gpus`, `gpu_type` and `cpus` of a TRES column."""
    gpus, gpu_type = _gpus(column)
    return _by_text(
        rows,
        column,
        gpus=gpus.cast(pl.Int32, strict=False),
        gpu_type=gpu_type.str.head(TEXT_MAX_CHARS),
        cpus=pl.col(column)
        .str.extract(r"(?:^|,)cpu=([0-9]{1,9})(?:,|$)")
        .cast(pl.Int32, strict=False),
    )


def _states(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `state` and `cancelled_by`."""
    return _by_text(
        rows,
        "State",
        state=pl.col("State").str.extract(_STATE).str.to_uppercase(),
        cancelled_by=pl.col("State").str.extract(r"(?i)^\s*CANCELLED by (\S.{0,254})"),
    )


def _job_runs(rows: pl.DataFrame, accounting: Accounting) -> pl.DataFrame:
    allocated, requested = _tres(rows, "AllocTRES"), _tres(rows, "ReqTRES")
    requested = requested.rename(lambda name: f"{name}_requested")
    suspended = _by_text(rows, "Suspended", suspended_s=seconds(pl.col("Suspended")))
    rows = pl.concat([rows, allocated, requested, _states(rows), suspended], how="horizontal")
    has_none = {  # without an allocation a record that never started had no GPU, if they are named
        "AllocTRES": (pl.col("AllocTRES").fill_null("") != "") | pl.col("Start").is_null(),
        "ReqTRES": pl.col("ReqTRES").fill_null("") != "",
    }
    none = pl.lit(0 if accounting.tracks_gpus else None, dtype=pl.Int32)
    integers = {"restarts": "Restarts", "cpus": "AllocCPUS", "cpus_requested": "ReqCPUS"}
    number = {
        name: pl.col(column).cast(pl.Int32, strict=False) for name, column in integers.items()
    }
    time_limit_s = pl.coalesce(
        pl.col("TimelimitRaw").cast(pl.Int64, strict=False) * 60, seconds(pl.col("Timelimit"))
    )
    return rows.select(
        cluster="Cluster",
        job_id="JobID",
        job_id_raw="JobIDRaw",
        db_index=pl.col("DBIndex").cast(pl.Int64, strict=False),
        **{column: pl.col(name) for name, column in TIMES.items()},
        state="state",
        cancelled_by="cancelled_by",
        **{column: _text(name) for name, column in TEXTS.items()},
        nodes="nodes",
        gpus=pl.coalesce("gpus", pl.when(has_none["AllocTRES"]).then(none)),
        gpu_type="gpu_type",
        gpus_requested=pl.coalesce("gpus_requested", pl.when(has_none["ReqTRES"]).then(none)),
        gpu_type_requested="gpu_type_requested",
        cpus=pl.coalesce("cpus", number["cpus"], pl.col("NCPUS").cast(pl.Int32, strict=False)),
        cpus_requested=pl.coalesce("cpus_requested", number["cpus_requested"]),
        elapsed_s=pl.coalesce(
            pl.col("ElapsedRaw").cast(pl.Int64, strict=False), seconds(pl.col("Elapsed"))
        ),
        suspended_s="suspended_s",
        time_limit_s=time_limit_s,
        is_time_ambiguous=pl.when("is_time_ambiguous").then(pl.lit(value=True)),
        restarts=number["restarts"],
        observed_at=pl.lit(accounting.observed_at, dtype=INSTANT),
    )


def _job_steps(rows: pl.DataFrame, accounting: Accounting) -> pl.DataFrame:
    rows = pl.concat([rows, _tres(rows, "AllocTRES")], how="horizontal")
    none = pl.lit(0 if accounting.tracks_gpus else None, dtype=pl.Int32)
    return rows.select(
        cluster="Cluster",
        job_id_raw=pl.col("JobIDRaw").str.extract(r"^([^.]*)"),
        step_id=pl.col("JobID").str.extract(r"\.(.*)$"),
        start_at="Start",
        end_at="End",
        state=pl.col("State").str.extract(_STATE).str.to_uppercase(),
        exit_code=_text("ExitCode"),
        nodes="nodes",
        gpus=pl.coalesce("gpus", pl.when(pl.col("AllocTRES").fill_null("") != "").then(none)),
    )


def _job_requests(rows: pl.DataFrame) -> Parsed:
    """Return `raw.job_requests` of job runs that asked for features of nodes."""
    columns = ("Cluster", "JobIDRaw", "Submit", "Constraints", "NNodes")
    found: list[tuple[dict[str, object], dict[str, object]]] = []
    for cluster, job_id, submit, features, count in rows.select(columns).iter_rows():
        nodes = int(count) if re.fullmatch("[0-9]{1,6}", count or "") else None
        if (sets := feature_sets(features, nodes)) is not None:
            key = {"cluster": cluster, "job_id_raw": job_id, "submit_at": submit}
            found.append((key, {"feature_sets": sets, "nodes_requested": nodes}))
    return requests.parsed(found, None)


def _text(name: str) -> pl.Expr:
    """Return a text field; an empty one is null."""
    return pl.when(pl.col(name) != "").then(pl.col(name))
