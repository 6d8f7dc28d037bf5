"""Serving: how fast models answer, within their objectives or not, and what tokens cost."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.serving import serving_engine_parts as single
from goodput_app.dashboard.components.serving import serving_parts as parts
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import serving

view = scope_bar.required_view()
st.title("Serving", anchor=False)
st.caption("How fast are answers, and what do tokens cost?")
if not serving.is_reported(view.scope):
    parts.not_configured()
    st.stop()
engines = None  # until all that the parts share is read
with panel("", "marts.serving_models"):
    serving.evaluate(view.scope)
    models = serving.models(view.scope)
    model = parts.chosen_model(models)
    shown = models if model is None else models.filter(models["model"] == model)
    attained = serving.attainment(view.scope, model)
    engines = serving.engines(view.scope, model)
    parts.answer(shown, attained)
if engines is None:
    st.stop()
with panel(
    "Models",
    "marts.serving_models",
    help="All GPUs together, one GPU and one request are three speeds: a batch "
    "raises the first two and lowers the third.",
):
    parts.models(shown)
with panel(
    "Latency",
    "marts.serving_latencies",
    help="A histogram gives lower and upper bounds of a quantile; a request log gives its value.",
):
    parts.latencies(view, model)
with panel("Latency over time", "marts.serving_latency_over_time"):
    parts.latency_over_time(view, models, model)
with panel(
    "Latency spikes",
    "marts.serving_spikes",
    help="Five minutes in which the p95 of an engine was at least twice the usual one.",
):
    single.spikes(serving.spikes(view.scope, model))
with panel(
    "Objectives",
    "marts.serving_attainment",
    help="Histograms of single latencies only bound the share of requests within all limits.",
):
    parts.objectives(attained)
with panel("Tokens, queue and KV cache", "marts.serving_over_time"):
    parts.over_time(view, model)
with panel("Engines", "marts.serving_engines", help="Most requests first."):
    single.engines(engines)
with panel("Tenants", "marts.serving_tenants", help="From request logs, slowest first."):
    single.tenants(serving.tenants(view.scope, model), engines)
with panel("Cost of tokens", "marts.serving_models"):
    parts.costs(shown)
