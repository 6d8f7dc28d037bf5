"""`goodput serving`: what inference engines do, how fast they answer, what tokens cost."""

import click
import polars as pl

from goodput_app.cli.database import built
from goodput_app.cli.options import rows_options, say
from goodput_app.cli.views import extent
from goodput_queries.names import resolved
from goodput_queries.scope import Scope

VIEWS = {  # what is asked -> mart, and the order of its rows
    "models": ("serving_models", "output_tokens desc nulls last, cluster, model, role nulls first"),
    "latency": (
        "serving_latencies",
        "cluster, model, level <> 'model', level <> 'role', role, endpoint, engine, metric, "
        "is_cold, method desc",
    ),
    "objectives": (
        "serving_attainment",
        "is_met nulls last, attained_low_ratio, cluster, model, method desc",
    ),
    "engines": ("serving_engines", "output_tokens desc nulls last, cluster, endpoint, engine"),
    "spikes": ("serving_spikes", "start_ms desc, cluster, endpoint, engine, model"),
    "tenants": ("serving_tenants", "p99_ttft_s desc nulls last, cluster, model, tenant"),
}


@click.command()
@click.argument("what", type=click.Choice(list(VIEWS)), default="models")
@click.option("--model", metavar="NAME", help="Only this model, as requests name it.")
@rows_options
def serving(
    *, what: str, model: str | None, limit: int | None, db: str, scope: Scope
) -> pl.DataFrame:
    """List models served, with tokens per second and cost of tokens.

    WHAT: models, latency (quantiles with their bounds), objectives (error budgets), engines (queue,
    KV cache, GPUs), spikes (of latency, with causes) or tenants (of request logs).
    """
    mart, order = VIEWS[what]
    rows = f" limit {limit}" if limit else ""
    with built(db) as store:
        found = store.read(
            f"select * from marts.{mart} where $1::varchar is null or model = $1::varchar "
            f"order by {order}{rows}",
            [model],
            scope=resolved(store, scope),
        )
        if found.is_empty():
            hint = "Configure a source as [[collect]] in goodput.toml"
            if what == "objectives":
                hint = "Configure them as [[serving.objectives]] in goodput.toml"
            say(f"No serving data{extent(store)}. {hint}.")
        return found
