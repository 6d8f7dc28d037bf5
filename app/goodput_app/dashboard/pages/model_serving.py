"""Serving: how fast models answer, within their objectives or not, and what tokens cost."""

import streamlit as st

from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.components.serving import serving_engine_parts as single
from goodput_app.dashboard.components.serving import serving_parts as parts
from goodput_app.dashboard.components.states import guarded, panel
from goodput_app.dashboard.data import serving

view = scope_bar.required_view()
st.title("Serving", anchor=False)
st.caption("How fast are answers, and what do tokens cost?")
if not serving.is_reported(view.scope):
    parts.not_configured()
    st.stop()
engines = None  # until all that the parts share is read
with guarded("marts.serving_models"):
    serving.evaluate(view.scope)
    models = serving.models(view.scope)
    model = parts.chosen_model(models)
    shown = models if model is None else models.filter(models["model"] == model)
    attained = serving.attainment(view.scope, model)
    engines = serving.engines(view.scope, model)
    parts.answer(shown, attained)
if engines is None:
    st.stop()
with panel("model_serving.models"):
    parts.models(shown)
with panel("model_serving.latency"):
    parts.latencies(view, model)
with panel("model_serving.latency_over_time"):
    parts.latency_over_time(view, models, model)
with panel("model_serving.latency_spikes"):
    single.spikes(serving.spikes(view.scope, model))
with panel("model_serving.objectives"):
    parts.objectives(attained)
with panel("model_serving.tokens_queue_and_kv_cache"):
    parts.over_time(view, model)
with panel("model_serving.engines"):
    single.engines(engines)
with panel("model_serving.tenants"):
    single.tenants(serving.tenants(view.scope, model), engines)
with panel("model_serving.cost_of_tokens"):
    parts.costs(shown)
