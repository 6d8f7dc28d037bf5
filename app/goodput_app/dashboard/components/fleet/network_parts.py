"""Parts of the Network page: the answer in a sentence, bandwidth, ports, transports, nccl-tests."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, places, tables
from goodput_app.dashboard.components.fleet import host_parts
from goodput_app.dashboard.data import network
from goodput_app.dashboard.figures import network as figures
from goodput_app.dashboard.figures.telemetry import LINKS
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import units
from goodput_queries.scope import Scope

RUN_NAME = pl.coalesce("job_name", "run_id").alias("run_name")
RETRANSMIT_MIN = 0.001  # what a healthy network stays below
NO_BANDWIDTH = (
    "Not configured: bus bandwidth of collectives. Set `NCCL_INSPECTOR_ENABLE=1`, "
    "`NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS` and `NCCL_INSPECTOR_DUMP_DIR` in jobs, and "
    "add to goodput.toml:"
)
NO_BENCHMARKS = "No run of nccl-tests was ingested. After each run:"


def answer(
    slow: pl.DataFrame,
    lost: pl.DataFrame,
    transports: pl.DataFrame,
    found_by_rules: pl.DataFrame | None,
) -> None:
    """Say what was found: slow nodes with evidence, slower tests, lost links, sockets.

    found_by_rules: marts.findings of the time range, None while they are evaluated
    """
    sure = slow.filter(pl.col("verdict") != "Not confirmed")
    found = []
    if not sure.is_empty():
        found.append(f"{units.count(sure.height, 'node')} with a slow link")
    if found_by_rules is not None:
        rows = found_by_rules.filter(pl.col("is_open") & (pl.col("rule") == "slow_benchmark"))
        if not rows.is_empty():
            names = theme.markdown_text("; ".join(rows["subject"].unique().sort()))
            found.append(f"{units.count(rows.height, 'bandwidth test')} slower ({names})")
    if not lost.is_empty():
        ports = lost.select("cluster", "node", "kind", "device", "port").n_unique()
        found.append(f"{units.count(ports, 'link')} lost")
    sockets = transports.filter("is_fallback")
    if not sockets.is_empty():
        nodes = sockets.select("cluster", "node").n_unique()
        found.append(f"NCCL on sockets on {units.count(nodes, 'node')}")
    if found:
        st.warning(f"{', '.join(found)}.", icon=":material/lan:")


def slow_nodes(found: pl.DataFrame, judged: bool) -> None:
    """Draw nodes of slow communicators; a picked one has links."""
    if judged or not found.is_empty():
        places.table("network.slow_nodes", found.with_columns(RUN_NAME))
        return
    st.caption(
        "No communicator can be assessed: no bandwidth was measured, or the expected one "
        "is not known (it needs nccl-tests of this site, or three communicators of one shape)."
    )


def bandwidth(found: pl.DataFrame) -> None:
    """Draw bus bandwidth by size of the chosen shape; found: `network.bandwidth`."""
    if found.is_empty():
        st.caption(NO_BANDWIDTH)
        st.code('[[collect]]\nsource = "nccl-inspector"\nfolder = "FOLDER"', language="toml")
        return
    names = {
        row["shape"]: _shape(row)
        for row in found.unique("shape").sort("shape").iter_rows(named=True)
    }
    shape = st.selectbox(
        "Communicators", list(names), format_func=names.__getitem__, key="network_shape"
    )
    rows = found.filter(pl.col("shape") == shape)
    charts.draw(
        figures.bandwidth(rows), rows.drop("shape", "in_all"), "bandwidth",
        "Bus bandwidth by operation and message size",
    )  # fmt: skip
    known = rows["expected_source"].drop_nulls().unique().sort().to_list()
    sources = "; ".join(theme.markdown_text(source) for source in known)
    st.caption(
        "Solid: median. Dotted: 1st percentile. "
        + (f"Dashed: expected ({sources})." if known else "The expected bandwidth is not known.")
    )


def _shape(row: dict[str, object]) -> str:
    ranks, nodes = int(str(row["ranks"])), int(str(row["nodes"] or 0))
    where = f"on {units.count(nodes, 'node')}" if nodes else "on nodes that are not known"
    model = row["gpu_model"] or "GPU model not known"
    return f"{units.count(ranks, 'rank')} {where}, {theme.printable(model)}, {row['cluster']}"


def communicators(scope: Scope) -> None:
    """Draw communicators against what is expected of them; a picked one has a link to its run."""
    found = network.communicators(scope)
    sizes = [units.size(size) for size in found["size_from_bytes"]]
    shown = found.with_columns(
        RUN_NAME,
        pl.Series("size", sizes, dtype=pl.String),
        basis=pl.coalesce("expected_source", pl.lit("90th percentile of its peers")),
        expected_bytes_per_s=pl.coalesce("expected_bytes_per_s", "peers_bytes_per_s"),
    )
    places.table("network.communicators", shown)


def links(scope: Scope) -> None:
    """Draw the network ports, those with a problem first; a picked one has a link to its node."""
    found = network.links(scope)
    if places.table("network.links", host_parts.with_link(found)):
        troubled, total = found["trouble"].count(), found["total"][0]
        more = f" The table has {found.height:,} of them." if found.height < total else ""
        st.caption(f"{troubled:,} of {total:,} ports have a problem.{more}")


def line_rates(scope: Scope) -> None:
    """Draw ports as share of their line rate: over time, node by port, and by rack."""
    found = network.line_rates(scope)
    if found.is_empty():
        st.caption("Not known: no port has both its counters of bytes and its speed.")
        return
    charts.over_time(
        figures.line_rates(found), found, "line-rates", "Share of line rate of ports over time"
    )
    ports = host_parts.with_link(network.port_map(scope))
    charts.draw(
        figures.port_map(ports), ports, "port-map", "Busiest hour of each port, node by node"
    )
    racks = network.racks(scope)
    if racks.is_empty():
        st.caption("Racks: the inventory does not have the racks of these nodes.")
        return
    named = racks.with_columns(pl.col("kind").replace(LINKS))
    tables.show(named, headers("network.racks"), "rack_line_rates", rows=6)
    st.caption("Busiest hours; traffic between nodes of one rack included.")


def retransmits(scope: Scope) -> None:
    """Draw the nodes that retransmitted many TCP segments; a picked one has a link."""
    found = network.retransmits(scope)
    if found.is_empty():
        return
    many = found.filter(pl.col("retransmit_ratio") >= RETRANSMIT_MIN)
    if many.is_empty():
        of = units.count(found.height, "node")
        least = units.percent(RETRANSMIT_MIN)
        st.caption(f"TCP: none of {of} retransmitted {least} of its segments or more.")
        return
    places.table("network.retransmits", many)


def transports(found: pl.DataFrame) -> None:
    """Draw which transport NCCL uses; a picked row has links."""
    note = (
        pl.when(pl.col("is_fallback") & pl.col("has_infiniband").fill_null(value=False))
        .then(pl.lit("fall-back to sockets, though InfiniBand or RoCE is there"))
        .when("is_fallback")
        .then(pl.lit("sockets carry traffic between nodes"))
    )
    places.table("network.transports", found.with_columns(RUN_NAME, note=note))


def benchmarks(scope: Scope) -> None:
    """Draw the runs of nccl-tests over time, and their table."""
    found = network.benchmarks(scope)
    if found.is_empty():
        st.caption(NO_BENCHMARKS)
        st.code("goodput ingest nccl-tests FILE", language="bash")
        return
    sizes = [units.size(size or 0) for size in found["size_bytes"]]
    shown = found.with_columns(pl.Series("size", sizes, dtype=pl.String))
    label = pl.format("{} {}, {} ranks, {}", "operation", "size", "ranks", "members")
    drawn = shown.with_columns(label=label.fill_null("shape not known"))
    charts.draw(
        figures.benchmarks(drawn), drawn.drop("node_names"), "benchmarks",
        "Bus bandwidth of nccl-tests over time",
    )  # fmt: skip
    tables.show(shown.reverse(), headers("network.benchmarks"), "benchmark")
