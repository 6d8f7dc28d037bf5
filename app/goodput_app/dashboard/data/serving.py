"""Serving engines: models, latencies, objectives, engines, tenants."""

from dataclasses import replace
from typing import Literal

import polars as pl

from goodput_app.dashboard.data.marts import read, reader, without_buckets
from goodput_queries.scope import Scope

ROWS_SHOWN = 500
BUCKETS_MS = (60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000)
BUCKETS_MAX = 100  # a quantile of less is of few requests
OF_MODEL = "($1::varchar is null or model = $1::varchar)"
COUNTED = "*, count(*) over () as rows_in_all"
Level = Literal["model", "role", "engine"]


def is_reported(scope: Scope) -> bool:
    """Say whether any engine of the scope reported, or a log names a request."""
    found = read("select count(*) > 0 as n from marts.serving_endpoints", without_buckets(scope))
    return bool(found.item())


def is_of_run(scope: Scope) -> bool:
    """Say whether serving engines ran on the GPUs of the scope's run."""
    sql = "select count(*) > 0 from marts.serving_endpoints where run_key = $1"
    return bool(read(sql, without_buckets(scope), scope.run).item())


def evaluate(scope: Scope) -> None:
    """Evaluate what most parts of the page read, each in a query with its own time limit.

    Of hundreds of engines and a day it is most of the time; the reads that follow find it kept.
    """
    for view in ("serving_intervals", "serving_histogram_intervals"):
        read(f"select count(*) from marts.{view}", without_buckets(scope))


models = reader(
    "serving_models",
    "max(coalesce(output_tokens, 0)) over (partition by cluster, model) desc, cluster, model, "
    "role nulls first",
)


def latencies(scope: Scope, level: Level, model: str | None) -> pl.DataFrame:
    """Return quantiles at a level, exact ones first: at most ROWS_SHOWN of `rows_in_all`."""
    return read(
        f"select {COUNTED} from marts.serving_latencies where {OF_MODEL} and level = $2 "
        "order by is_cold, cluster, model, role, endpoint, engine, list_position(['ttft_s', "
        "'inter_token_s', 'per_output_token_s', 'e2e_s', 'queue_s', 'prefill_s', 'decode_s'], "
        f"metric), method desc limit {ROWS_SHOWN}",
        without_buckets(scope),
        model,
        level,
    )


def latency_over_time(scope: Scope, model: str, metric: str) -> pl.DataFrame:
    """Return p50 and p99 of a model with their bounds in buckets of `bucket_ms`."""
    return read(
        "select from_ms(bucket_ms) as at, * exclude (bucket_ms) "
        "from marts.serving_latency_over_time where model = $1 and metric = $2 "
        "order by bucket_ms, cluster",
        replace(scope, bucket_ms=bucket_ms(scope)),
        model,
        metric,
    )


def over_time(scope: Scope, model: str | None) -> pl.DataFrame:
    """Return tokens, requests and KV cache of models in buckets of `bucket_ms`."""
    return read(
        "select from_ms(bucket_ms) as at, * exclude (bucket_ms) from marts.serving_over_time "
        f"where {OF_MODEL} order by bucket_ms, cluster, model",
        replace(scope, bucket_ms=bucket_ms(scope)),
        model,
    )


attainment = reader(
    "serving_attainment",
    "is_met nulls last, attained_low_ratio, cluster, model, method desc",
    where=OF_MODEL,
)
# those with most requests first
engines = reader(
    "serving_engines",
    "coalesce(running_requests, 0) + coalesce(waiting_requests, 0) desc, "
    "output_tokens desc nulls last, cluster, endpoint, engine",
    columns=COUNTED,
    where=OF_MODEL,
    limit=ROWS_SHOWN,
)
tenants = reader(
    "serving_tenants",
    "p99_ttft_s desc nulls last, cluster, model, tenant",
    columns=COUNTED,
    where=OF_MODEL,
    limit=ROWS_SHOWN,
)
spikes = reader(
    "serving_spikes",
    "start_ms desc, cluster, endpoint, engine, model",
    columns=COUNTED,
    where=OF_MODEL,
    limit=ROWS_SHOWN,
)


def bucket_ms(scope: Scope) -> int:
    """Return the finest bucket of which the window holds at most BUCKETS_MAX."""
    window = (scope.to_ms or 0) - (scope.from_ms or 0)
    return next((ms for ms in BUCKETS_MS if ms * BUCKETS_MAX >= window), BUCKETS_MS[-1])
