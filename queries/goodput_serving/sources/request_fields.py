"""Fields of a request in a log: their names, and what their texts are, for many lines at once."""

from collections.abc import Mapping
from typing import Final
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.formats import raw_tables
from goodput_ingest.formats.json_text.json_lines import EPOCH_S_MAX
from goodput_ingest.formats.parsed import INSTANT
from goodput_ingest.formats.timestamps import instants

TEXT_MAX_CHARS: Final = 255
ERROR_MAX_CHARS: Final = 500
NAMES: Final = {  # a field, and what logs call it
    "request_id": ("request_id", "id"),
    "arrival_at": ("arrival", "arrival_at"),
    "first_token_at": ("first_token", "first_token_at"),
    "end_at": ("end", "end_at"),
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cached_tokens": ("cached_tokens",),
    "model": ("model", "model_name"),
    "status": ("status", "finish_reason"),
    "error": ("error",),
    "endpoint": ("endpoint",),
    "tenant": ("tenant", "user"),
}
TIMES: Final = ("arrival_at", "first_token_at", "end_at")
TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")
STATUSES: Final = {
    **dict.fromkeys(("ok", "success", "succeeded", "stop", "length", "tool_calls"), "ok"),
    **dict.fromkeys(
        ("aborted", "abort", "cancelled", "canceled", "disconnected", "499"), "aborted"
    ),
    **dict.fromkeys(("error", "failed", "failure", "timeout", "rejected"), "error"),
}
HTTP_OK, HTTP_ERROR = r"^2\d\d$", r"^[45]\d\d$"
NUMBER: Final = r"^\d+(?:\.\d+)?$"
MILLISECONDS_FROM: Final = 1e11  # epoch ms from 1973 on; as seconds it is the year 5138
TOKENS_MAX: Final = 2.0**53
SCHEMA = raw_tables.columns("serving_requests", "source", "cluster")


def has_requests(names: set[str]) -> bool:
    """Say whether fields of these names are a request's: arrival, and its tokens or its end."""
    return _is_named("arrival_at", names) and any(
        _is_named(name, names) for name in ("end_at", "first_token_at", "output_tokens")
    ) and any(_is_named(name, names) for name in (*TOKENS, "model"))  # fmt: skip


def _is_named(field: str, names: set[str]) -> bool:
    return not names.isdisjoint(NAMES[field])


def columns(rows: list[Mapping[str, str]]) -> pl.DataFrame:
    """Return the texts of each field, null where a row has none."""
    return pl.DataFrame(
        {
            field: [next((row[name] for name in names if row.get(name)), None) for row in rows]
            for field, names in NAMES.items()
        },
        schema=dict.fromkeys(NAMES, pl.String),
    )


def read(texts: pl.DataFrame, zone: ZoneInfo | None) -> tuple[pl.DataFrame, pl.Series]:
    """Return rows of SCHEMA and, for each, what is wrong with it; null: nothing.

    A status that is not known is null.
    """
    found: dict[str, pl.Series] = {}
    problems: list[pl.Series] = []
    for name in TIMES:
        found[name], problem = _moments(texts[name], zone)
        problems.append((NAMES[name][0] + ": ") + problem)
    for name in TOKENS:
        found[name], problem = _whole(texts[name])
        problems.append(problem)
    rows = pl.DataFrame(
        [
            *(values.alias(name) for name, values in found.items()),
            *(_shown(texts[name]) for name in ("request_id", "endpoint", "model", "tenant")),
            _shown(texts["error"], ERROR_MAX_CHARS),
            status(texts["status"]),
        ]
    )
    return rows.select(SCHEMA.keys()).cast(pl.Schema(SCHEMA)), _problem(rows, problems)


def status(texts: pl.Series) -> pl.Series:
    """Return ok, aborted or error of what logs write, or of a status of HTTP; null: not known."""
    text = pl.col("text")
    return pl.DataFrame({"text": texts.str.to_lowercase()}).select(
        pl.when(text.is_in(list(STATUSES)))
        .then(text.replace_strict(STATUSES, default=None, return_dtype=pl.String))
        .when(text.str.contains(HTTP_OK))
        .then(pl.lit("ok"))
        .when(text.str.contains(HTTP_ERROR))
        .then(pl.lit("error"))
        .alias("status")
    )["status"]


def _problem(rows: pl.DataFrame, problems: list[pl.Series]) -> pl.Series:
    arrival, first, end = (pl.col(name) for name in TIMES)
    is_later = [
        (arrival.is_null(), "arrival is missing"),
        (first < arrival, "first_token is before arrival"),
        (end < arrival, "end is before arrival"),
        (end < first, "end is before first_token"),
        (
            pl.col("cached_tokens") > pl.col("input_tokens"),
            "cached_tokens is more than input_tokens",
        ),
    ]
    named = [problem.alias(f"problem {number}") for number, problem in enumerate(problems)]
    return rows.hstack(named).select(
        pl.coalesce(
            *(pl.col(problem.name) for problem in named),
            *(pl.when(is_so).then(pl.lit(reason)) for is_so, reason in is_later),
        ).alias("problem")
    )["problem"]


def _moments(texts: pl.Series, zone: ZoneInfo | None) -> tuple[pl.Series, pl.Series]:
    """Return naive UTC times and what is wrong with a text: epoch seconds or ms, or ISO 8601."""
    number = texts.str.extract(NUMBER, 0).cast(pl.Float64, strict=False)
    seconds = pl.DataFrame({"n": number}).select(
        pl.when(pl.col("n") >= MILLISECONDS_FROM).then(pl.col("n") / 1000).otherwise("n")
    )["n"]
    is_number = (seconds < EPOCH_S_MAX).fill_null(value=False)
    at = (seconds.set(~is_number, None) * 1e6).round().cast(pl.Int64).cast(INSTANT)
    others, problem = instants(texts.set(is_number, None), zone, is_local_wrong=True)
    problem = problem.set(problem.is_null() & is_number, None)
    return at.zip_with(is_number, others), problem


def _whole(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    value = pl.col("text").cast(pl.Float64, strict=False)
    is_whole = (value >= 0) & (value < TOKENS_MAX) & (value == value.floor())
    is_wrong = pl.col("text").is_not_null() & ~is_whole.fill_null(value=False)
    shown = pl.format(f"{texts.name} is {{}}, expected a whole number from 0", _short("text"))
    found = pl.DataFrame({"text": texts}).select(
        pl.when(~is_wrong).then(value).cast(pl.Int64).alias("value"),
        pl.when(is_wrong).then(shown).alias("problem"),
    )
    return found["value"], found["problem"]


def _short(name: str) -> pl.Expr:
    return pl.col(name).str.slice(0, 40)


def _shown(texts: pl.Series, max_chars: int = TEXT_MAX_CHARS) -> pl.Series:
    """Return texts that are safe to store and show."""
    return texts.str.slice(0, max_chars).str.replace_all(r"[\x00-\x1f\x7f]", "\ufffd")
