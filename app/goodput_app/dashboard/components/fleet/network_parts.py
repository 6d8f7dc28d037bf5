"""Parts of the Network page: the answer in a sentence, bandwidth, ports, transports, nccl-tests."""

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import charts, places, tables
from goodput_app.dashboard.components.fleet import host_parts
from goodput_app.dashboard.data import network
from goodput_app.dashboard.figures import network as figures
from goodput_app.dashboard.table_columns import Columns, headers
from goodput_app.text import units
from goodput_queries.scope import Scope

SLOW_NODES = headers("network.slow_nodes")
COMMUNICATORS = headers("network.communicators")
LINKS = headers("network.links")
RACKS = headers("network.racks")
LOST = Columns({"node": "Node", **host_parts.EVENTS})
GPU_LINKS = headers("network.gpu_links")
RETRANSMITS = headers("network.retransmits")
TRANSPORTS = headers("network.transports")
BENCHMARKS = headers("network.benchmarks")
RUN_NAME = pl.coalesce("job_name", "run_id").alias("run_name")
RETRANSMIT_MIN = 0.001  # what a healthy network stays below
NO_BANDWIDTH = (
    "Not configured: bus bandwidth of collectives. Set `NCCL_INSPECTOR_ENABLE=1`, "
    "`NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS` and `NCCL_INSPECTOR_DUMP_DIR` in jobs, and "
    "add to goodput.toml:"
)
NO_LINKS = (
    "Not configured: Ethernet and InfiniBand ports. Let the Prometheus that Goodput reads scrape "
    "node_exporter (port 9100), or add to goodput.toml:"
)
NO_TRANSPORTS = (
    "Not configured: transports. Set `NCCL_DEBUG=INFO` and `NCCL_DEBUG_FILE` in jobs, and add to "
    "goodput.toml:"
)
NO_BENCHMARKS = "No run of nccl-tests was ingested. After each run:"


def answer(slow: pl.DataFrame, lost: pl.DataFrame, transports: pl.DataFrame) -> None:
    """Say what was found: slow nodes with evidence, lost links, fall-backs to sockets."""
    sure = slow.filter(pl.col("verdict") != "Not confirmed")
    found = []
    if not sure.is_empty():
        found.append(f"{units.count(sure.height, 'node')} with a slow link")
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
    if found.is_empty():
        st.caption(
            "No communicator was slower than 80 % of what is expected."
            if judged
            else "No communicator can be assessed: no bandwidth was measured, or the expected one "
            "is not known (it needs nccl-tests of this site, or three communicators of one shape)."
        )
        return
    places.pick(found.with_columns(RUN_NAME), SLOW_NODES, "slow_node", ("cluster", "node"), rows=8)


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
    if found.is_empty():
        return
    sizes = [units.size(size) for size in found["size_from_bytes"]]
    shown = found.with_columns(
        RUN_NAME,
        pl.Series("size", sizes, dtype=pl.String),
        basis=pl.coalesce("expected_source", pl.lit("90th percentile of its peers")),
        expected_bytes_per_s=pl.coalesce("expected_bytes_per_s", "peers_bytes_per_s"),
    )
    of = ("cluster", "comm_id", "operation", "size_from_bytes")
    places.pick(shown, COMMUNICATORS, "communicator", of, rows=8)


def links(scope: Scope) -> None:
    """Draw the network ports, those with a problem first; a picked one has a link to its node."""
    found = network.links(scope)
    if found.is_empty():
        st.caption(NO_LINKS)
        st.code(
            '[[collect]]\nsource = "node-exporter"\nurls = ["http://NODE:9100"]', language="toml"
        )
        return
    names = [host_parts.link_name(*row) for row in found.select("kind", "device", "port").rows()]
    shown = found.with_columns(pl.Series("link", names, dtype=pl.String))
    of = ("cluster", "node", "kind", "device", "port")
    places.pick(shown, LINKS, "port", of, rows=10)
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
    ports = network.port_map(scope)
    names = [host_parts.link_name(*row) for row in ports.select("kind", "device", "port").rows()]
    ports = ports.with_columns(pl.Series("link", names, dtype=pl.String))
    charts.draw(
        figures.port_map(ports), ports, "port-map", "Busiest hour of each port, node by node"
    )
    racks = network.racks(scope)
    if racks.is_empty():
        st.caption("Racks: the inventory does not have the racks of these nodes.")
        return
    tables.show(racks, RACKS, "rack_line_rates", rows=6)
    st.caption("Busiest hours; traffic between nodes of one rack included.")


def lost_links(found: pl.DataFrame) -> None:
    """Draw when links were down and which runs they hit; a picked one has links."""
    if found.is_empty():
        st.caption("No reading found a link down.")
        return
    of = ("cluster", "node", "kind", "device", "port", "start_at")
    places.pick(host_parts.named(found), LOST, "lost_link", of, rows=8)


def gpu_links(scope: Scope) -> None:
    """Draw errors of NVLink and PCIe; a picked GPU has a link."""
    found = network.gpu_links(scope)
    if found.is_empty():
        st.caption(
            "No counter of NVLink or PCIe errors rose. Exporters count PCIe replays by default; "
            "`goodput doctor` shows the lines that enable those of NVLink."
        )
        return
    places.pick(found, GPU_LINKS, "gpu_link", ("gpu_uuid", "metric"), rows=6)


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
    places.pick(many, RETRANSMITS, "retransmit", ("cluster", "node"), rows=6)


def transports(found: pl.DataFrame) -> None:
    """Draw which transport NCCL uses; a picked row has links."""
    if found.is_empty():
        st.caption(NO_TRANSPORTS)
        st.code('[[collect]]\nsource = "nccl-debug"\nfolder = "FOLDER"', language="toml")
        return
    note = (
        pl.when(pl.col("is_fallback") & pl.col("has_infiniband").fill_null(value=False))
        .then(pl.lit("fall-back to sockets, though InfiniBand or RoCE is there"))
        .when("is_fallback")
        .then(pl.lit("sockets carry traffic between nodes"))
    )
    of = ("cluster", "node", "run_key", "transport")
    places.pick(found.with_columns(RUN_NAME, note=note), TRANSPORTS, "transport", of, rows=8)


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
    tables.show(shown.reverse(), BENCHMARKS, "benchmark")
