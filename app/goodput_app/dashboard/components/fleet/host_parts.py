"""Parts of the Node page that show its host: lines, lost links, what is not configured."""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.components import states
from goodput_app.dashboard.data import metrics
from goodput_app.dashboard.figures import telemetry as figures

NAME = "Host"
NOT_CONFIGURED = (
    "Not configured: metrics of the host (CPU, memory, disks, Ethernet, InfiniBand). Let the "
    "Prometheus that Goodput reads scrape node_exporter (port 9100), or add to goodput.toml:"
)
BY_STATE = "a reading found it down"
BY_COUNTER = "its link-down counter rose between two readings"


def lines(series: pl.DataFrame) -> list[figures.Line]:
    """Return the line of a host; none where nothing was read. series: `network.host_series`."""
    if series.is_empty():
        return []
    shown = [name for name in series.columns if name != "at"]
    return [figures.Line(NAME, metrics.with_holes(series, shown))]


def link_name(kind: str, device: str, port: str) -> str:
    """Return what a network port is called."""
    return f"{figures.LINKS.get(kind, kind)} {device}{f' port {port}' if port else ''}"


def with_link(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of network ports with `link`, what each is called."""
    names = [link_name(*row) for row in rows.select("kind", "device", "port").iter_rows()]
    return rows.with_columns(pl.Series("link", names, dtype=pl.String))


def named(events: pl.DataFrame) -> pl.DataFrame:
    """Return events of links with `link`, `evidence` and `length_s`."""
    length = (pl.col("end_at") - pl.col("start_at")).dt.total_milliseconds() / 1000
    evidence = pl.when("is_seen_down").then(pl.lit(BY_STATE)).otherwise(pl.lit(BY_COUNTER))
    return with_link(events).with_columns(
        evidence.alias("evidence"),
        # down at no reading: for how long is not known
        pl.when("is_seen_down").then(length).alias("length_s"),
    )


def marks(events: pl.DataFrame) -> pl.DataFrame:
    """Return events of links as markers: `lane`, `at` and `hover`."""
    hovers = [f"Link down: {theme.plotly_text(name)}" for name in with_link(events)["link"]]
    hover = pl.Series("hover", hovers, dtype=pl.String)
    return events.select(pl.lit(figures.EVENTS).alias("lane"), hover, at="start_at")


def panels(series: pl.DataFrame) -> Sequence[figures.Panel]:
    """Return the small multiples that the host has values for."""
    found = lines(series)
    return [panel for panel in figures.host_panels() if figures.is_measured(panel, found)]


def missing(series: pl.DataFrame, node: str, *, is_of_lake: bool = False) -> None:
    """Name what is not measured of a host, with the lines that enable it.

    is_of_lake: the series was read from the lake, which has all readings.
    """
    lacks_older = not is_of_lake and states.say_which_readings("marts.host_intervals")
    if series.is_empty() and lacks_older:
        return
    if series.is_empty():
        st.caption(NOT_CONFIGURED)
        url = f"http://{theme.printable(node, 80)}:9100"
        st.code(f'[[collect]]\nsource = "node-exporter"\nurls = ["{url}"]', language="toml")
        return
    shown = panels(series)
    optional = {"CPU steal", "Swap used"}  # of virtual machines; where there is swap
    absent = [
        panel.title
        for panel in figures.host_panels()
        if panel not in shown and panel.title not in optional
    ]
    if absent:
        st.caption(f"The host does not report: {', '.join(absent)}.")
