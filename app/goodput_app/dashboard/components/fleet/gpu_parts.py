"""Parts of the GPU page: heading, peers, tiles and the chart on one time axis."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places, scope_bar, tables
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.fleet import what_happened
from goodput_app.dashboard.data import marts, metrics, node_axis, other_metrics
from goodput_app.dashboard.figures import telemetry as figures
from goodput_app.dashboard.scope import View
from goodput_app.settings import settings
from goodput_app.text import units
from goodput_app.text.throttling import empty_meaning
from goodput_queries.scope import Scope

WHOLE = ""
MEMORY_ERRORS = {"hour_at": "Hour", "label": "Counter", "rise": "Increase"}
MEMORY_KINDS = {
    "ecc_uncorrected": "ECC, uncorrected",
    "ecc_corrected": "ECC, corrected",
    "row_remap": "Row remaps",
}


def absent(gpu: str, scope: Scope, view: View) -> None:
    """Say that the GPU has no evidence in the time range, and offer its last; or that none has it.

    scope: of the GPU in the time range
    """
    st.title("GPU", anchor=False)
    named = theme.markdown_text(gpu)
    known = metrics.gpus(replace(scope, from_ms=None, to_ms=None))
    if known.is_empty():
        st.info(f"No GPU {named} is in the inventory.", icon=":material/hourglass_empty:")
        return
    stay = known.sort("start_at", nulls_last=False).row(-1, named=True)
    last = min(filter(None, (stay["last_reading_at"], stay["end_at"])), default=view.as_of)
    st.info(
        f"GPU {named} has no evidence in {time_zone.window(view.start, view.end)}. "
        f"Its last data is from {time_zone.moment(last)}.",
        icon=":material/hourglass_empty:",
    )
    end = last + timedelta(seconds=1)  # the end of a time range is not part of it
    window = {"from": time_zone.iso(end - (view.end - view.start)), "to": time_zone.iso(end)}
    st.button(
        f"Jump to its last data ({time_zone.moment(last)})",
        key="gpu_jump",
        on_click=scope_bar.go,
        args=(window,),
    )


def heading(card: Mapping[str, Any], stays: int, outages: pl.DataFrame) -> None:
    """Draw which GPU it is, where it is, the state of its node, and a link to it.

    outages: marts.node_outages of the node
    """
    name = places.gpu_name(card["gpu_index"], card["gpu_uuid"])
    title = f"{theme.markdown_text(name)}, {theme.markdown_text(card['node'])}"
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        ends = dict(marts.clusters().select("cluster", "as_of_at").iter_rows())
        what_happened.state(outages, ends)
    rack = places.rack_name(card["rack"])
    facts = [card["gpu_model"], card["pci_bus_id"], rack, card["cluster"]]
    if card["instances"]:
        facts.append(units.count(card["instances"], "MIG instance"))
    if stays > 1:
        facts.append(f"in {stays} nodes in this time range, the last is shown")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(" / ".join(theme.markdown_text(fact) for fact in facts if fact))
        places.to_node(card["node"], card["cluster"])
        page, icon = "pages/metric_explorer.py", "query_stats"
        places.to_page(page, "Other metrics", icon, node=None, gpu=card["gpu_uuid"])


def peers(card: Mapping[str, Any], scope: Scope, allocations: pl.DataFrame) -> list[str]:
    """Let people choose the peers and return them: GPUs of the node or of a run."""
    runs = {
        row["run_key"]: f"GPUs of run {theme.printable(row['job_name'] or row['run_id'])}"
        for row in allocations.drop_nulls("run_key").sort("start_at", descending=True).to_dicts()
    }
    left, _ = st.columns([1.3, 3.2])
    with left:
        scope_bar.choice("peers", "Peers", runs, none="GPUs of the same node and model")
    wanted = st.query_params.get("peers")
    if wanted is not None and wanted in runs:
        return metrics.run_gpus(scope, wanted)
    there = metrics.gpus(replace(scope, gpu_uuid=None, node=card["node"], cluster=card["cluster"]))
    alike = there.filter(pl.col("gpu_model").eq_missing(pl.lit(card["gpu_model"])))
    return alike["gpu_uuid"].unique().sort().to_list()


def series(
    scope: Scope, gpu: str, others: Sequence[str]
) -> tuple[pl.DataFrame, metrics.Resolution]:
    """Return the series of a GPU and of its peers, and how they are binned."""
    found = sorted({gpu, *others})
    read = metrics.resolution_of(scope, len(found), can_ask_lake=True)
    return metrics.gpu_series(scope, found, read), read


def tiles(own: pl.DataFrame, events: pl.DataFrame) -> None:
    """Draw means and extremes of the window; what is not measured says so."""
    if own.is_empty():
        st.info("No readings of this GPU in this time range.", icon=":material/help:")
        return
    activity = next(
        (m for m in ("sm_active_ratio", "engine_active_ratio", "gpu_busy_ratio")
         if own[m].null_count() < own.height), None,
    )  # fmt: skip
    named = {"sm_active_ratio": "SM active", "engine_active_ratio": "Engine active"}
    of_it = None if activity is None else own[activity].mean()
    last = own.sort("at").row(-1, named=True)
    columns = st.columns(5)
    columns[0].metric(f"{named.get(activity or '', 'GPU utilisation')} (mean)", _percent(of_it))
    columns[1].metric("Power (mean)", _amount(own["power_w"].mean(), "W"))
    columns[2].metric("Temperature (highest)", _amount(own["gpu_temperature_c_max"].max(), "°C"))
    columns[3].metric("Memory used (last)", _gib(last["memory_used_bytes_last"]))
    columns[4].metric("Events", f"{events.height:,}")


def memory_errors(found: pl.DataFrame) -> None:
    """Draw what rose of the counters of memory errors. `found`: marts.gpu_memory_errors."""
    missing = [name for kind, name in MEMORY_KINDS.items() if kind not in found["kind"]]
    rises = found.filter(pl.col("rise") > 0)
    if not rises.is_empty():
        tables.show(rises, MEMORY_ERRORS, "memory_errors", rows=6)
    elif not found.is_empty():
        names = [name for kind, name in MEMORY_KINDS.items() if kind in found["kind"]]
        st.caption(f"No counter of memory errors rose in this time range ({'; '.join(names)}).")
    if missing:
        st.caption(f"Not reported: {'; '.join(missing)}.")


def throttling(found: pl.DataFrame, sources: pl.DataFrame) -> None:
    """Draw whether throttling of the GPU is passing or chronic.

    found: marts.throttled_gpus; sources: marts.throttle_sources
    """
    row = sources.row(0, named=True)
    if not found.is_empty():
        parts.throttled_table(found, "throttled")
    elif row["has_reasons"] or row["has_counters"]:
        st.caption("Neither heat, the power brake nor the board slowed this GPU.")
    else:
        st.caption(empty_meaning(sources))


def heat_margin(own: pl.DataFrame, card: Mapping[str, Any], scope: Scope) -> None:
    """Say how far the highest temperature of the GPU is from its slowdown temperature."""
    limit = _limits(card, scope)["slowdown_temperature_c"]
    highest: Any = None if own.is_empty() else own["gpu_temperature_c_max"].max()
    if highest is None or limit is None:
        missing = "temperature" if highest is None else "slowdown temperature"
        st.caption(f"Margin to the slowdown temperature: unknown, no source reports the {missing}.")
        return
    st.caption(
        f"Margin to the slowdown temperature: {limit - highest:,.0f} °C (highest "
        f"{highest:,.0f} °C, slowdown at {limit:,.0f} °C)."
    )


def _percent(value: Any) -> str:
    return units.NOT_MEASURED if value is None else units.percent(float(value))


def _amount(value: Any, unit: str) -> str:
    return units.NOT_MEASURED if value is None else f"{float(value):,.0f} {unit}"


def _gib(value: Any) -> str:
    return units.NOT_MEASURED if value is None else f"{float(value) / 2**30:,.1f} GiB"


def draw(
    view: View,
    card: Mapping[str, Any],
    allocations: pl.DataFrame,
    events: pl.DataFrame,
    found: tuple[pl.DataFrame, metrics.Resolution],
    scope: Scope,
) -> None:
    """Draw what held the GPU, its metrics with the peers' band, and events."""
    every, read = found
    gpu = card["gpu_uuid"]
    own = every.filter(pl.col("gpu_uuid") == gpu)
    bins, bin_ms = node_axis.categories(scope)
    instances = sorted({*bins["gpu_instance"], *allocations["gpu_instance"]} or {WHOLE})
    is_cut = len(instances) > 1  # whose time its instances have, each in a lane
    lane_of = {(gpu, unit): _lane(figures.HOLDER, unit) for unit in instances}
    bars = parts.holders(allocations, lane_of)
    of_categories = (
        metrics.categories(scope, read).with_columns(
            lane=pl.col("gpu_instance").replace_strict(
                {unit: _lane(parts.CATEGORY, unit) for unit in instances}, return_dtype=pl.String
            )
        )
        if is_cut
        else None
    )
    of_reasons = parts.reasons(own, read.bin_ms)
    gaps = metrics.telemetry_gaps(scope).with_columns(lane=pl.lit(figures.NO_READINGS))
    marks = parts.marks(events, pl.lit(figures.EVENTS))
    lanes = figures.Lanes(
        [
            *(lane for unit in instances for lane in (
                _lane(figures.HOLDER, unit), *([_lane(parts.CATEGORY, unit)] * is_cut))),
            *of_reasons["lane"].unique(maintain_order=True).to_list(),
            *([figures.EVENTS] if not marks.is_empty() else []),
            *([figures.NO_READINGS] if not gaps.is_empty() else []),
        ],
        bars, of_categories, of_reasons, gaps, marks, parts.chosen_at(events),
    )  # fmt: skip
    instances = sorted(own["gpu_instance"].unique().to_list())
    names = {(gpu, one): f"instance {one}" if one else "this GPU" for one in instances}
    lines = parts.lines(own, names, metrics.METRICS)
    if lines:
        bands = {name: metrics.peers_band(every, gpu, name) for name in metrics.METRICS}
        kept = {name: band for name, band in bands.items() if not band.is_empty()}
        lines[0] = replace(lines[0], bands=kept)
    parts.draw(view, lanes, lines, _limits(card, scope), parts.measured(own), "gpu-telemetry",
               "Job runs of the GPU, its ledger, metrics and events on one time axis",
               shares=figures.Shares(bins, bin_ms) if bins.height else None)  # fmt: skip
    others = every["gpu_uuid"].n_unique() - (0 if own.is_empty() else 1)
    st.caption(
        f"{read.name}. "
        + "A lane of an instance is its ledger: the height is the share of each bin. " * is_cut
        + f"Grey band: {units.count(others, 'peer')} with readings. A line breaks where samples "
        "are missing."
    )


def _limits(card: Mapping[str, Any], scope: Scope) -> dict[str, float | None]:
    """Return the limits in force: as the GPU reports them, else as the inventory has them."""
    reported = other_metrics.limits(scope, card["gpu_uuid"])
    power = reported.get("power_limit_enforced_w", reported.get("power_limit_w"))
    heat = reported.get("slowdown_temperature_c")
    return {
        "power_limit_w": card["power_limit_w"] if power is None else power,
        "slowdown_temperature_c": card["slowdown_temperature_c"] if heat is None else heat,
        "mfu_target": settings().ui.mfu_target,
    }


def _lane(name: str, unit: str) -> str:
    """Return the lane of an instance; a whole GPU has the lane's own name."""
    return f"{name}, {theme.plotly_text(unit, 20)}" if unit else name
