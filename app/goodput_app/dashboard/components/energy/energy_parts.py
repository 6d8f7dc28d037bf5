"""Parts of the Energy page: power over time, accounts with carbon, idle power, head-room."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import charts, places, scope_bar, tables
from goodput_app.dashboard.components.energy.energy_use_parts import not_configured
from goodput_app.dashboard.components.rows import changes
from goodput_app.dashboard.data import energy, metrics
from goodput_app.dashboard.data.energy import Level
from goodput_app.dashboard.figures import power as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import Columns, headers
from goodput_app.text import units
from goodput_queries.scope import Scope

COST_PAGE = "pages/cost_statement.py"
LEVELS: dict[str, Level] = {"rack": "rack", "node": "node"}
LEVEL_LABELS = {"rack": "Rack", "node": "Node"}
UNIT_NAMES = {"team": "account", "rack": "rack", "node": "node"}
UNKNOWN = {"team": "Account unknown", "rack": "Rack unknown", "node": "Node unknown"}
NOT_HELD = {"free": "Unallocated", "not_available": "Not available"}
NO_POWER = (
    "Not configured: power. Let the DCGM exporter count these fields (the file "
    "`recommended-counters.csv` has them), or poll NVML:"
)
POWER_COUNTERS = (
    "DCGM_FI_DEV_POWER_USAGE, gauge, Power draw (in W).\n"
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy since driver load (in mJ)."
)
NO_ENERGY = (
    "Not configured: energy. Accounts are measured by the energy counter of their GPUs, or else by "
    "their power readings. Add to the counters of the DCGM exporter:"
)
NO_CARBON = (
    "Not configured: carbon. Write grams of CO2 equivalent per kWh by hour, from the grid operator "
    "or a service, to a CSV file:"
)
NO_CARBON_FREE = (
    "Not configured: carbon-free share. It is the column `carbon_free_ratio` of the carbon file:"
)
CARBON_EXAMPLE = (
    "cluster,valid_from,valid_to,g_per_kwh,carbon_free_ratio,pue,server_ratio\n"
    ",2027-01-15T08:00:00Z,2027-01-15T09:00:00Z,412,0.35,1.4,1.25"
)
NO_TARIFF = "Electricity has no cost: no tariff applies. `goodput ingest tariffs tariffs.csv`"
NO_LIMIT = (
    "Not configured: power limit and slowdown temperature. Poll NVML, or add to the counters of "
    "the DCGM exporter:"
)
LIMIT_COUNTERS = (
    "DCGM_FI_DEV_POWER_MGMT_LIMIT, gauge, Power limit (in W).\n"
    "DCGM_FI_DEV_SLOWDOWN_TEMP, gauge, Slowdown temperature (in C).\n"
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, Why clocks are lower (bitmask)."
)
IDLE = headers("energy.idle")
ALWAYS_SHOWN = ("gpu_model", "power_w", "energy_kwh", "p99_power_w")  # their absence is the answer


def power(view: View) -> None:
    """Draw power over time by what the URL chooses, and what was read of it."""
    left, _ = st.columns([1, 4])
    with left:
        scope_bar.choice("by", "Stack by", LEVEL_LABELS, none="Account")
    level = LEVELS.get(st.query_params.get("by", ""), "team")
    gpus = metrics.gpus(view.scope)["gpu_uuid"].n_unique()
    bucket = energy.bucket_ms(view.scope, gpus)
    frame = energy.power(view.scope, level, bucket)
    if frame["power_w"].null_count() == frame.height:
        not_configured(NO_POWER, POWER_COUNTERS)
        return
    figure = figures.over_time(frame, bucket, view.window, UNKNOWN[level])
    shown = frame.select(
        "at", "cluster", "name", "availability", "power_w", "coverage_ratio", "read_gpus", "gpus"
    )
    charts.over_time(figure, shown, "power-over-time", "Power of the GPUs over time, stacked")
    st.caption(
        f"Means of {units.duration(bucket / 1000)}, of the GPUs alone, without the rest of the "
        "server. A GPU without a reading adds nothing: the lower chart shows how much of the GPU "
        "time was read."
    )
    filters = "run" if level == "team" else "team and run"
    if view.scope.run or (view.scope.team and level != "team"):
        st.caption(f"The filter of {filters} does not apply to power by {UNIT_NAMES[level]}.")


def accounts(frame: pl.DataFrame, scope: Scope) -> None:
    """Draw energy and carbon by account; a picked account has a link to its cost."""
    label = pl.coalesce(
        "team",
        pl.col("availability").replace_strict(NOT_HELD, default=None, return_dtype=pl.String),
        pl.lit(UNKNOWN["team"]),
    )
    named = frame.with_columns(label=label)
    named, names = changes.of_energy(named, _shown(named, headers("energy.accounts")), scope)
    ids = named.select(pl.concat_str("cluster", "availability", pl.col("team").fill_null(""),
                                     separator="|")).to_series()  # fmt: skip
    picked = tables.pick(named, names, "account", ids)
    if picked is not None and picked["team"] is not None:
        team, place = picked["team"], {"cluster": picked["cluster"], "node": None, "run": None}
        cost_of = f"Cost of {theme.markdown_text(team, 60)}"
        places.to_page(COST_PAGE, cost_of, "payments", team=team, **place)
    else:
        st.caption("Select an account for a link to its cost.")
    if frame["energy_kwh"].null_count() == frame.height:
        not_configured(NO_ENERGY, POWER_COUNTERS)
        return
    if (integrated := frame["integrated_kwh"].sum()) > 0:
        st.caption(
            f"{integrated:,.1f} kWh of it are integrated from power readings: these GPUs have no "
            "energy counter."
        )
    _unknown_carbon(frame)
    if "electricity_cost" not in names:
        st.caption(NO_TARIFF)


def _shown(frame: pl.DataFrame, names: Columns) -> Columns:
    """Return the columns that say something: of one cluster not its name, none without a value."""
    shown = names.of_clusters(frame).filled(frame, ALWAYS_SHOWN)
    is_part = "carbon_kg" in shown and (frame["unknown_hours"] > 0).any()
    return shown if is_part else shown.without(["unknown_carbon_kwh"])


def _unknown_carbon(frame: pl.DataFrame) -> None:
    """Say how to add intensities where there are none, and which hours have none."""
    if frame["carbon_kg"].null_count() == frame.height:
        not_configured(NO_CARBON, CARBON_EXAMPLE, "goodput ingest carbon carbon.csv")
        return
    if frame["carbon_free_ratio"].null_count() == frame.height:
        not_configured(NO_CARBON_FREE, CARBON_EXAMPLE, "goodput ingest carbon carbon.csv")
    missing = frame.filter(pl.col("unknown_hours") > 0)
    if not missing.is_empty():
        first, last = missing["unknown_from_at"].min(), missing["unknown_to_at"].max()
        hours = units.count(int(missing["unknown_hours"].max()), "hour")  # type: ignore[arg-type]
        st.caption(
            f"Carbon is of a part of the energy: up to {hours} between "
            f"{time_zone.moment(first)} and {time_zone.moment(last)} without an intensity."  # type: ignore[arg-type]
        )


def idle(frame: pl.DataFrame) -> None:
    """Draw what idle GPUs draw, by model and category."""
    if frame.is_empty():
        st.caption("No GPU was idle in this time range.")
        return
    tables.show(frame, _shown(frame, IDLE), "idle-power")
    if frame["power_w"].null_count() == frame.height:
        st.caption("Idle power is unknown: no GPU was read and idle for a whole ten minutes.")
    else:
        st.caption("Idle energy: idle power x GPU time; empty where no ten minutes show it.")


def headroom(frame: pl.DataFrame) -> None:
    """Draw how near nodes come to power limit and slowdown; a picked one has a link."""
    read = frame.filter(pl.col("read_gpus") > 0)
    if read.is_empty():
        st.caption("No power reading in this time range.")
        return
    of = ("cluster", "node", "gpu_model")
    places.pick(read, _shown(read, headers("energy.headroom")), "headroom", of)
    if (total := frame["nodes"][0]) > read.height:
        st.caption(f"{read.height:,} of {total:,} nodes, those nearest to the limit.")
    limits = ("p99_limit_ratio", "slowdown_margin_c")
    if all(read[name].null_count() == read.height for name in limits):
        not_configured(NO_LIMIT, LIMIT_COUNTERS)
    asked = {"part": "what-if", "ask": "power-cap"}
    label = "What would a lower power limit save?"
    places.to_page(COST_PAGE, label, "calculate", node=None, run=None, **asked)
