"""Parts of the Serving page: models, latencies, objectives, what is over time."""

from typing import get_args

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, places, scope_bar, tables, tiles
from goodput_app.dashboard.components.runs.speed_parts import amount
from goodput_app.dashboard.components.serving.serving_engine_parts import METRICS, reported, rest
from goodput_app.dashboard.data import metrics, serving
from goodput_app.dashboard.figures import serving as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units

MODEL, LEVEL, METRIC = "served_model", "served_by", "served_metric"
MODELS = headers("serving.models")
COSTS = headers("serving.costs")
METHODS = {"requests": "request log (exact)", "histogram": "histogram"}
LEVELS: dict[serving.Level, str] = {"model": "Model", "role": "Role", "engine": "Engine"}
# of a model whose engines all have one role that row would repeat the total
IS_ONLY_ROLE = pl.col("role").is_not_null() & (pl.len().over("cluster", "model") == 2)
NOT_CONFIGURED = (
    "Not configured: serving engines. Let Goodput scrape the metrics of vLLM, SGLang, Triton, "
    "TensorRT-LLM, TGI or Dynamo, or the Prometheus that has them. Add to goodput.toml:"
)
COLLECT = (
    '[[collect]]\nsource = "serving-metrics"\nurls = ["http://NODE:8000/metrics"]\n'
    'node = "NODE"        # and gpus = ["0", "1"], where its series do not name them'
)


def not_configured() -> None:
    """Say which source the page needs, and the lines that add it."""
    st.info(NOT_CONFIGURED, icon=":material/dns:")
    st.code(COLLECT, language="toml")


def chosen_model(models: pl.DataFrame) -> str | None:
    """Draw the filter of the model; return what it is set to."""
    left, _ = st.columns([1, 3])
    names = models["model"].unique(maintain_order=True).to_list()
    with left:
        scope_bar.choice(MODEL, "Served model", {name: theme.printable(name) for name in names})
    return st.query_params.get(MODEL) or None


def answer(models: pl.DataFrame, attained: pl.DataFrame) -> None:
    """Draw the tiles of all models together, or of the chosen one. models: of all roles."""
    total = models.filter(pl.col("role").is_null())
    per_gpu = _ratio(total, "output_tokens", "observed_gpu_ms", 1000)
    known = total["gpus"].sum() if total["gpus"].null_count() == 0 else None
    gpus = "GPUs not known" if known is None else f"{known:,.4g} GPUs"
    done, failed = _sum(total, "requests_finished"), _sum(total, "requests_failed")
    energy = _per_million(total, "energy_j", "joules_per_m_tokens")
    price = _per_million(total, "cost", "cost_per_m_tokens")
    idle, share = _sum(total, "idle_ms"), _ratio(total, "idle_ms", "gpu_ms")
    tiles.row("serving-tiles", [
        ("Output tokens/s", amount(_sum(total, "output_tokens_per_s")),
         f"{amount(per_gpu)} per GPU, {gpus}"),
        ("Requests", units.NOT_KNOWN if done is None else f"{done:,.0f}",
         "failed not reported" if failed is None else f"{failed:,.0f} failed"),
        _objective_tile(attained),
        ("Cost per million tokens", units.NOT_KNOWN if price is None else units.price(price),
         "energy not known" if energy is None else f"{energy / 1e6:,.4g} MJ per million"),
        ("Idle serving cost", units.cost(_sum(total, "idle_cost")),
         "" if idle is None else f"{units.gpu_time(idle)} = {units.percent(share)}"),
    ])  # fmt: skip


def _objective_tile(attained: pl.DataFrame) -> tiles.Tile:
    if attained.is_empty():
        return "Within objective", units.NOT_KNOWN, "no objective is configured"
    worst = attained.row(0, named=True)
    low, high = (units.percent(worst[f"attained_{end}_ratio"]) for end in ("low", "high"))
    target = worst["target_ratio"]
    wanted = "" if target is None else f", {units.percent(target)} wanted"
    shown = low if low == high else f"{low} to {high}"
    return "Within objective", shown, f"{theme.printable(worst['model'], 40)}{wanted}"


def models(frame: pl.DataFrame) -> None:
    """Draw models and roles; a picked row shows its model alone."""
    named = frame.filter(~IS_ONLY_ROLE).with_columns(role=pl.col("role").fill_null("all roles"))
    ids = named.select(pl.concat_str("cluster", "model", "role", separator="|")).to_series()
    opens = [{MODEL: row["model"]} for row in named.iter_rows(named=True)]
    tables.pick(named, reported(named, MODELS), "served-models", ids, opens=opens)
    st.caption("Select a row to see its model alone. Idle serving time is of whole GPUs.")


def costs(frame: pl.DataFrame) -> None:
    """Draw cost and energy of a million tokens, input and output apart."""
    is_total = pl.col("role").is_null()
    named = frame.filter(is_total | (pl.col("cost").is_not_null() & ~IS_ONLY_ROLE)).with_columns(
        role=pl.col("role").fill_null("all roles"), energy_kwh=pl.col("energy_j") / 3.6e6
    )
    prices = {
        name: tables.price_column(header, named[name])
        for name, header in COSTS.items()
        if name.startswith("cost_per_")
    }
    tables.show(named, reported(named, COSTS), "served-costs", wide=prices)
    st.caption(
        "All time of the GPUs is in it, model load and idle time included. Input and output share "
        "the cost by the seconds that requests spent in prefill and decode."
    )


def latencies(view: View, model: str | None) -> None:
    """Draw quantiles by model, role or engine; the first requests after a start apart."""
    left, _ = st.columns([1, 3])
    with left:
        others: dict[str, str] = {one: label for one, label in LEVELS.items() if one != "model"}
        scope_bar.choice(LEVEL, "Latency by", others, none=LEVELS["model"])
    asked = st.query_params.get(LEVEL, "model")
    level: serving.Level = next((one for one in get_args(serving.Level) if one == asked), "model")
    frame = serving.latencies(view.scope, level, model)
    if frame.is_empty():
        st.caption("No latency histogram and no request log in this time range.")
        return
    shown = frame.with_columns(
        metric_label=pl.col("metric").replace_strict(METRICS, default=pl.col("metric")),
        method_label=pl.col("method").replace_strict(METHODS, default=pl.col("method")),
        tail=pl.col("tail_ratio"),
        **{f"{name}_bounds": _bounds(name) for name in ("p50", "p95", "p99")},
    )
    warm, cold = shown.filter(~pl.col("is_cold")), shown.filter("is_cold")
    if warm.is_empty():
        st.caption("All requests are among the first after a start of their engine.")
    else:
        _quantiles(warm, level, "served-latency")
    if not cold.is_empty():
        st.markdown("**Cold starts**: the first requests after an engine started")
        _quantiles(cold, level, "served-cold-latency")
    rest(frame, "latencies")


def _quantiles(frame: pl.DataFrame, level: serving.Level, key: str) -> None:
    above = {"model": ("role", "endpoint"), "role": ("endpoint",), "engine": ()}[level]
    names = reported(frame, headers("serving.latencies")).without(above)
    tables.show(frame, names, key)


def _bounds(name: str) -> pl.Expr:
    low, high = (pl.col(f"{name}_{end}_s").round_sig_figs(4) for end in ("low", "high"))
    text = pl.format("{} to {}", low, high.cast(pl.String).fill_null("over the last bucket"))
    return pl.when(pl.col("method") == "requests").then(pl.lit("exact")).otherwise(text)


def latency_over_time(view: View, models: pl.DataFrame, model: str | None) -> None:
    """Draw p50 and p99 of a model over time, with the bounds of the histogram's buckets."""
    left, _ = st.columns([1, 3])
    drawn = {name: METRICS[name] for name in ("inter_token_s", "e2e_s")}
    with left:
        scope_bar.choice(METRIC, "Drawn latency", drawn, none=METRICS["ttft_s"])
    metric = st.query_params.get(METRIC, "ttft_s")
    metric = metric if metric in drawn else "ttft_s"
    name = model or models["model"][0]
    frame = serving.latency_over_time(view.scope, name, metric)
    if frame.is_empty():
        st.caption(f"No histogram of {METRICS[metric].lower()} for {theme.markdown_text(name)}.")
        return
    seconds = [column for column in frame.columns if column.endswith("_s")]
    charts.over_time(
        figures.latency(metrics.with_holes(frame, seconds), view.window), frame,
        "served-latency-over-time",
        f"{METRICS[metric]} of {theme.printable(name, 60)} over time: p50 and p99 with bounds",
    )  # fmt: skip
    length = units.duration(serving.bucket_ms(view.scope) / 1000)
    st.caption(
        f"{theme.markdown_text(name)}, by {length}; the bands are the bounds of the buckets."
    )


def objectives(frame: pl.DataFrame) -> None:
    """Draw objectives, what is attained and what of the error budget is spent."""
    limits = pl.concat_str(
        [
            pl.format("{} {} s", pl.lit(label), pl.col(name))
            for label, name in (("first token", "ttft_limit_s"), ("between tokens",
                "inter_token_limit_s"), ("end to end", "e2e_limit_s"))
        ],
        separator=", ", ignore_nulls=True,
    )  # fmt: skip
    state = (
        pl.when(pl.col("is_met").is_null())
        .then(pl.when(pl.col("target_ratio").is_null()).then(pl.lit("no target"))
              .otherwise(pl.lit("open: the bounds include the target")))
        .when("is_met").then(pl.lit("met")).otherwise(pl.lit("missed"))
    )  # fmt: skip
    method = pl.col("method").replace_strict(METHODS, default=pl.col("method"))
    shown = frame.with_columns(limits=limits, state=state, method_label=method)
    places.table("serving.objectives", shown)


def over_time(view: View, model: str | None) -> None:
    """Draw tokens, queue and KV cache of models over time."""
    frame = serving.over_time(view.scope, model)
    if frame.is_empty():
        st.caption("Engines report no counters in this time range.")
        return
    charts.over_time(
        figures.load(frame, view.window), frame, "served-over-time",
        "Output tokens per second, waiting requests and highest KV cache use of models over time",
    )  # fmt: skip
    if (models := frame["model"].n_unique()) > figures.MODELS_DRAWN:
        st.caption(
            f"The {figures.MODELS_DRAWN} of {models} models with most tokens; the table has all."
        )


def _sum(frame: pl.DataFrame, column: str) -> float | None:
    """Return the sum of what is known; None: nothing is."""
    known = frame[column].drop_nulls()
    return float(known.sum()) if known.len() else None


def _ratio(frame: pl.DataFrame, part: str, whole: str, scale: float = 1) -> float | None:
    both = frame.filter(pl.col(part).is_not_null() & (pl.col(whole) > 0))
    return float(both[part].sum()) / float(both[whole].sum()) * scale if both.height else None


def _per_million(total: pl.DataFrame, column: str, known_by: str) -> float | None:
    """Return an amount of the models of which it is known for a million of their tokens."""
    known = total.filter(pl.col(known_by).is_not_null())
    tokens = (_sum(known, "input_tokens") or 0) + (_sum(known, "output_tokens") or 0)
    return (_sum(known, column) or 0) / tokens * 1e6 if tokens else None
