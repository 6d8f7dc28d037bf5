"""Parts of the page of health: the fleet's failures, nodes by day, nodes by cost, tables."""

import json
from datetime import datetime, timedelta

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, places, scope_bar, tables, tiles
from goodput_app.dashboard.data import health, metrics
from goodput_app.dashboard.figures import health as figures
from goodput_app.dashboard.scope import View
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_queries.scope import Scope

DAY = timedelta(days=1)
FIRST_KIND = "xid_hardware"
LINKED = 6  # nodes with a link of their own above the table
NODES = headers("health.nodes")
# columns by counters, which may not be read, and their kind of error
COUNTED: dict[str, str] = {
    "ecc_uncorrected": "ecc_uncorrected",
    "row_remaps": "row_remap",
    "thermal_s": "thermal",
}
DRIVERS = headers("health.drivers")


def fleet(found: pl.DataFrame) -> None:
    """Draw how often nodes fail; found: marts.fleet_reliability."""
    if found.height != 1:
        tables.show(found, headers("health.clusters"), "clusters")
        return
    row = found.row(0, named=True)
    if not row["has_states"]:
        st.info(
            "No source reports node states, so it is not known how often nodes fail. They "
            "come with Slurm's `sacctmgr show event`, kube-state-metrics (source `kubernetes`), or "
            "a CSV file (source `node-states`).",
            icon=":material/help:",
        )
        return
    between = f"95 %: {units.duration(row['mtbf_low_s'])} to {_at_most(row['mtbf_high_s'])}"
    failures = "no failure" if row["mtbf_s"] is None else units.duration(row["mtbf_s"])
    tiles.row("tiles", [
        ("Node failures", f"{row['failures']:,}", f"on {units.count(row['nodes'], 'node')}"),
        ("Time between failures", failures, f"of one node; {between}"),
        ("Time to repair", units.duration(row["mttr_s"]), "mean of the outages that are over"),
        ("Nodes not down", units.percent(row["available_ratio"]), "of the time of the nodes"),
    ])  # fmt: skip


def _at_most(seconds: float | None) -> str:
    return "no upper bound" if seconds is None else units.duration(seconds)


def node_days(view: View) -> None:
    """Draw the chosen kind of error by node and day; a selected cell has a link to the node."""
    kinds = health.kinds()
    read = set(health.kinds_read(view.scope)["kind"])
    labels = {
        kind: label + ("" if kind in read else " (not read)")
        for kind, label in kinds.select("kind", "label").iter_rows()
    }
    first = labels.pop(FIRST_KIND)
    wanted = st.query_params.get("kind") or FIRST_KIND
    scope_bar.choice("kind", "Kind of error", labels, none=first)
    chosen = kinds.filter(pl.col("kind") == wanted).to_dicts()
    if not chosen:
        st.warning(f"'{theme.markdown_text(wanted)}' is not a kind of error.")
        return
    kind = chosen[0]
    st.caption(theme.markdown_text(f"{kind['definition']}."))
    found = health.node_days(view.scope, wanted)
    if found.is_empty():
        st.info(not_read(wanted), icon=":material/help:")
        return
    figure = figures.node_days(found, _days(view), kind)
    opened = charts.pick(figure, found, "node-days", f"{kind['label']} of nodes by day")
    if opened is not None:
        cluster, node, day = json.loads(opened)
        begin = datetime.fromisoformat(day)
        start, end = max(begin, view.start), min(begin + DAY, view.end)
        places.to_node(node, cluster, (start, end), verb=f"{day}: open node ")
    text = "Select a cell for a link to the node on that day. Grey: none. Hatched: not read."
    if (nodes := found["nodes"][0]) > (drawn := found["node"].n_unique()):
        text += f" The {drawn} nodes with most of {nodes:,}."
    if found["days"][0] > health.DAYS_SHOWN:
        text += f" The last {health.DAYS_SHOWN} of {found['days'][0]:,} days."
    st.caption(text)


def not_read(kind: str) -> str:
    """Return why nothing is known of a kind of error, and what to enable."""
    if kind.startswith("xid"):
        return (
            "No source reported an Xid or another event of a GPU in this cluster. Connect the "
            "kernel logs of the nodes (source `kernel-log`); the exporter's gauge "
            "DCGM_FI_DEV_XID_ERRORS shows the last code alone."
        )
    counters = {
        "ecc_uncorrected": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "ecc_corrected": "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "row_remap": "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "nvlink": "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "pcie": "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "thermal": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    }
    return (
        "No GPU of this scope reported the counter. DCGM exporter: add a line "
        f"`{counters[kind]}, counter, ...` to its file of counters (recommended-counters.csv)."
    )


def _days(view: View) -> list[datetime]:
    """Return the days of the window, at most those that are drawn."""
    first = view.start.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [first]
    while (day := days[-1] + DAY) < view.end:
        days.append(day)
    return days[-health.DAYS_SHOWN :]


def nodes(found: pl.DataFrame, scope: Scope) -> None:
    """Draw the nodes that cost most, with links to the first of them. found: marts.node_health."""
    shown = found.with_columns(
        suggested=pl.concat_str("verdict", "verdict_reason", separator=": ", ignore_nulls=False)
    )
    unread = [name for name in COUNTED if found[name].null_count() == found.height]
    zero = [name for name in COUNTED if name not in unread and not found[name].sum()]
    columns = NODES.without([*unread, *zero])
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for row in found.head(LINKED).iter_rows(named=True):
            places.to_node(row["node"], row["cluster"], verb="")
    places.pick(shown, columns, "of_node", ("cluster", "node"), rows=8)
    text = ""
    if (total := found["total"][0]) > found.height:
        text += f"The {found.height:,} of {total:,} nodes that cost most. "
    if unread:
        text += f"Not read on any node: {'; '.join(NODES[name] for name in unread)}. "
    if zero:
        read = dict(health.kinds_read(scope).select("kind", "gpus").iter_rows())
        of = units.count(metrics.gpus(scope)["gpu_uuid"].n_unique(), "GPU")
        said = (
            f"{NODES[name]} (read on {read.get(COUNTED[name]) or 0:,} of {of})" for name in zero
        )
        text += f"0 wherever it is read: {'; '.join(said)}. "
    if text:
        st.caption(text)


def by_job_size(found: pl.DataFrame) -> None:
    """Draw the time between failures by job size; found: marts.reliability_by_job_size."""
    size = pl.when(pl.col("gpus_from") == pl.col("gpus_to"))
    shown = found.with_columns(
        size=size.then(pl.col("gpus_to").cast(pl.String)).otherwise(
            pl.format("{} to {}", "gpus_from", "gpus_to")
        )
    )
    figure = figures.reliability(found)
    charts.draw(figure, found, "reliability", "Time between failures by job size")
    tables.show(shown, headers("health.sizes"), "sizes")


def acts(sums: pl.DataFrame, found: pl.DataFrame) -> None:
    """Draw what acts on nodes and jobs cost, and whether they held; sums: marts.acts_by_cause."""
    if found.is_empty():
        st.caption("Nobody acted on a node or a job in this time range, and no node was down.")
        return
    again = int(sums["again"].sum())
    parts = [
        f"{units.gpu_time(int(sums[f'{part}_ms'].sum()))} ({units.cost(_sum(sums, part))}) {said}"
        for part, said in (
            ("untouched", "lost before anyone acted"),
            ("act", "by the acts"),
            ("again", f"of it by {again:,} after which the same cause came again within a day"),
        )
    ]
    text = f"{units.count(int(sums['acts'].sum()), 'act')}: {', '.join(parts)}."
    if unknown := int(sums["unknown"].sum()):
        text += f" What {unknown:,} cost is not known: their jobs report no steps."
    st.caption(text)
    places.table("health.acts_by_cause", sums)
    shown = found.with_columns(
        actor=pl.concat_str(
            pl.col("actor").fill_null(units.NOT_KNOWN),
            "acted_by",
            separator=": ",
            ignore_nulls=True,
        )
    )
    places.table("health.acts", shown)


def _sum(found: pl.DataFrame, part: str) -> float | None:
    """Return the cost of a part; None where a repair has no price."""
    costs = found[f"{part}_cost"]
    return None if costs.null_count() else float(costs.sum())


def drivers(found: pl.DataFrame) -> None:
    """Draw errors by driver, or say that no version is known; found: marts.driver_versions."""
    versions = ("driver_version", "vbios_version")
    if all(found[name].null_count() == found.height for name in versions):
        st.caption(
            "No source reports driver or VBIOS of these GPUs: the DCGM exporter does with labels "
            "`DCGM_FI_DRIVER_VERSION` and `DCGM_FI_DEV_VBIOS_VERSION`, NVML and the inventory do."
        )
        return
    tables.show(found.with_columns(pl.col(versions).fill_null(units.NOT_KNOWN)), DRIVERS, "drivers")
    if found["vbios_version"].null_count() == found.height:
        st.caption(
            "No source reports the VBIOS: the DCGM exporter does with a line "
            "`DCGM_FI_DEV_VBIOS_VERSION, label, VBIOS version.`, NVML does."
        )
