"""One list of what happened to a node or the fleet: states, errors, links, runs and findings.

The latest is first. Beside the lanes it stands as short rows; the table behind it has all columns.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places, scope_bar
from goodput_app.dashboard.components import telemetry_parts as parts
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.components.fleet import host_parts
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.table_columns import Columns, headers
from goodput_app.text import units

ROWS_SHOWN = 14
BRIEF_SHOWN = 16
FLEET_ROWS, FLEET_BRIEF = 50, 12
BEGAN = "Run began on "
KINDS = ("page", "ticket", "note", "node state", "failed attempt", "GPU error", "failed test")
COLUMNS, OF_FLEET = headers("node.happened"), headers("fleet.happened")
PARAM = "happened"
ID = ("start_at", "what", "run_key", "gpu_uuid")
SCHEMA: dict[str, Any] = {
    "kind": pl.String, "start_at": pl.Datetime("us"), "what": pl.String, "run_name": pl.String,
    "source": pl.String, "length_s": pl.Float64, "cost": pl.Float64, "reason": pl.String,
    "cluster": pl.String, "node": pl.String, "gpu_uuid": pl.String, "run_key": pl.String,
    "finding_key": pl.String, "severity": pl.String,
    "is_mark": pl.Boolean,  # on the time axis; others are bars of its lanes
}  # fmt: skip
SUBJECTS = {"node state": "node", "failed attempt": "run_key", "GPU error": "gpu_uuid"}
OUTCOMES = {"limit": "reached its time limit"}
RANKED = ("page", "ticket", "node state")  # before all others, which are ranked by cost
LENGTH = (pl.col("end_at") - pl.col("start_at")).dt.total_milliseconds() / 1000


def merged(
    outages: pl.DataFrame,
    events: pl.DataFrame,
    tests: pl.DataFrame,
    findings: pl.DataFrame | None,
    *,
    links: pl.DataFrame | None = None,
    allocations: pl.DataFrame | None = None,
    failures: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return what happened as rows of SCHEMA with `id`, the latest first.

    Rows of marts.node_outages, gpu_events, gpu_allocations, node_tests and findings;
    links: `network.link_events`; failures: `failures.ended_badly`. Results of one test at a time
    are one row. A finding begins with its first evidence, an outage with its first state.
    """
    found = [
        outages.select(
            "start_at", "cluster", "node", "reason", length_s=LENGTH,
            what=pl.format("Node {}", "state"), source="sources", kind=pl.lit("node state"),
        ),
        events.with_columns(_event_names(events)).select(
            "what", "cluster", "node", "gpu_uuid", "source", start_at="event_at",
            reason="meaning", is_mark=True, kind=pl.lit("GPU error"),
        ),
        _of_tests(tests),
    ]  # fmt: skip
    if links is not None:
        found.append(
            host_parts.named(links).select(
                "start_at", "cluster", "node", "run_key", "length_s", run_name="runs",
                source="kind", is_mark=True, reason="evidence",
                what=pl.format("Link down: {}", "link"),
            )
        )  # fmt: skip
    if allocations is not None:
        found.append(
            allocations.group_by("cluster", "node", "job_run_key", "run_key", "attempt").agg(
                run_name=pl.coalesce("job_name", "run_id").first(),
                start_at=pl.col("start_at").min(),
                end_at=pl.col("end_at").max(),
                gpus=pl.col("gpu_uuid").n_unique(),
            ).select(
                "start_at", "cluster", "node", "run_key", "run_name", length_s=LENGTH,
                what=pl.format(f"{BEGAN}{{}} of its GPUs", "gpus"), source=pl.lit("allocation"),
            )
        )  # fmt: skip
    if failures is not None:
        found.append(
            failures.with_columns(
                kind=pl.lit("failed attempt"), source=pl.lit("scheduler"),
                what=pl.format("Attempt {} {}", "attempt", pl.col("outcome").replace(OUTCOMES)),
            )
        )  # fmt: skip
    if findings is not None:
        found.append(_of_findings(findings))
    rows = [frame.cast({c: t for c, t in SCHEMA.items() if c in frame.columns}) for frame in found]
    empty = pl.DataFrame(schema=SCHEMA)
    every = pl.concat([empty, *rows], how="diagonal").sort("start_at", "what", descending=True)
    return every.with_columns(places.ids(every, ID))


def _of_tests(tests: pl.DataFrame) -> pl.DataFrame:
    gpus = pl.col("gpu_indices").unique().sort().str.join(", ").str.strip_prefix(", ")
    of_gpus = pl.when(pl.col("gpus") != "").then(pl.format(" (GPU {})", "gpus"))
    return tests.group_by("cluster", "node", "event_at", "test", "result").agg(
        source=pl.col("source").first(), gpus=gpus, reason=pl.col("message").drop_nulls().first()
    ).select(
        "cluster", "node", "source", "reason", start_at="event_at",
        kind=pl.when(pl.col("result") == "fail").then(pl.lit("failed test")),
        what=pl.format("Test {}: {}{}", "result", "test", of_gpus.otherwise(pl.lit(""))),
    )  # fmt: skip


def _of_findings(findings: pl.DataFrame) -> pl.DataFrame:
    is_of_all = pl.all_horizontal(pl.col("node", "run_name").is_null()) & (pl.col("subject") != "")
    return findings.rename({"since_at": "start_at", "until_at": "end_at"}).select(
        "start_at", "cluster", "node", "gpu_uuid", "run_key", "run_name", "cost",
        "finding_key", "severity", is_mark=True, kind="severity",
        length_s=LENGTH, reason="evidence", source=pl.lit("finding"),
        what=pl.format("{}: {}{}", pl.col("severity").str.to_titlecase(), "title", pl.when(
            is_of_all
        ).then(pl.format(" ({})", "subject")).otherwise(pl.lit(""))),
    )  # fmt: skip


def of_fleet(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the fleet's list: no test that passed, and one row for one event.

    What begins with a finding on the same node, run or GPU is in it as that finding.
    rows: `merged`
    """
    kept = rows.filter(pl.col("kind").is_not_null())
    found = kept.filter(pl.col("finding_key").is_not_null())
    for kind, of in SUBJECTS.items():
        are_of_it = kept.filter(pl.col("kind") == kind)
        same = are_of_it.join(found, on=["cluster", of, "start_at"], how="semi")
        kept = kept.join(same, on="id", how="anti", maintain_order="left")
    return kept


def worst(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return so many rows, pages and tickets before others and then by cost, the latest first.

    The chosen one is among them.
    """
    is_other = pl.col("id") != st.query_params.get(PARAM, "")
    place = pl.col("kind").replace_strict({kind: n for n, kind in enumerate(RANKED)}, default=9)
    by_worth = rows.sort(
        is_other, place, "cost", descending=[False, False, True], nulls_last=True,
        maintain_order=True,
    )  # fmt: skip
    return by_worth.head(most).sort("start_at", "what", descending=True)


def counted(rows: pl.DataFrame) -> str:
    """Return how many of each kind there are. rows: `of_fleet`."""
    counts = dict(rows["kind"].value_counts().iter_rows())
    return ", ".join(units.count(counts[kind], kind) for kind in KINDS if kind in counts)


def _event_names(events: pl.DataFrame) -> pl.Series:
    names = [
        parts.event_name(row) + parts.PRECISION.get(row["ts_precision"], "")
        for row in events.iter_rows(named=True)
    ]
    return pl.Series("what", names, dtype=pl.String)


def brief(rows: pl.DataFrame) -> None:
    """Draw the latest rows one below the other, each with the way to what it names.

    rows: `merged`
    """
    if rows.is_empty():
        st.caption("Nothing was recorded in this time range.")
        return
    st.html(theme.look("what_happened"))
    with st.container(key="happened_brief", gap=None):
        _entries(most_telling(rows))
    if rows.height > BRIEF_SHOWN:
        st.caption(f"{BRIEF_SHOWN} of {rows.height:,}; the list below has all.")


def most_telling(rows: pl.DataFrame) -> pl.DataFrame:
    """Return at most BRIEF_SHOWN rows, the latest first: begins of runs where there is room.

    The chosen one is among them.
    """
    is_run = pl.col("what").str.starts_with(BEGAN)
    is_other = pl.col("id") != st.query_params.get(PARAM, "")
    kept = rows.sort(is_other, is_run, maintain_order=True).head(BRIEF_SHOWN)
    return kept.sort("start_at", "what", descending=True)


def _entries(rows: pl.DataFrame) -> None:
    day = None
    chosen = st.query_params.get(PARAM)
    for number, row in enumerate(rows.iter_rows(named=True)):
        at = time_zone.local(row["start_at"])
        if at.date() != day:
            day = at.date()
            st.caption(f"{day:%Y-%m-%d} {time_zone.suffix(at)}")
        what, run = row["what"], row["run_name"]
        if run and what.startswith(BEGAN):
            what, run = f"{run} began on {what.removeprefix(BEGAN)}", None
        facts = [
            None if st.query_params.get("node") else row["node"],
            run,
            row["source"],
            units.duration(row["length_s"]) if row["length_s"] else None,
            units.cost(row["cost"]) if row["cost"] else None,
        ]
        is_chosen = row["id"] == chosen
        with st.container(key=f"happened_{'chosen' if is_chosen else number}", gap=None):
            with st.container(horizontal=True, gap="xsmall", vertical_alignment="top"):
                st.button(
                    f"{at:%H:%M:%S}", key=f"happened_at_{number}", type="tertiary",
                    on_click=scope_bar.go, args=({PARAM: None if is_chosen else row["id"]},),
                )  # fmt: skip
                _entry(theme.markdown_text(what), row)
            st.caption(theme.markdown_text(" · ".join(fact for fact in facts if fact)))


def _entry(label: str, row: Mapping[str, Any]) -> None:
    """Draw what happened, as a link to the finding, GPU, run or other node that it names."""
    if row["finding_key"]:
        params = scope_bar.carried(node=None, finding=row["finding_key"])
        st.page_link(finding_parts.PAGE, label=label, query_params=params)
    elif row["gpu_uuid"]:
        page, params = name_links.gpu(row["gpu_uuid"])
        st.page_link(page, label=label, query_params=params)
    elif row["run_key"]:
        page, params = name_links.run(row["run_key"])
        st.page_link(page, label=label, query_params=params)
    elif row["node"] and not st.query_params.get("node"):
        page, params = name_links.node(row["node"], row["cluster"])
        st.page_link(page, label=label, query_params=params)
    else:
        st.markdown(label)


def draw(rows: pl.DataFrame, columns: Columns = COLUMNS, shown: int = ROWS_SHOWN) -> None:
    """Draw the whole list, in which a picked row has links. rows: `merged`."""
    places.pick(rows, columns.filled(rows), PARAM, ID, rows=shown)


def state(outages: pl.DataFrame, ends: Mapping[str, datetime]) -> None:
    """Draw the state of a node at the end of what is known, where it is out of service.

    outages: marts.node_outages, of one node; ends: of the data of each cluster
    """
    for row in outages.filter(pl.col("end_at").is_null()).iter_rows(named=True):
        length = units.duration((ends[row["cluster"]] - row["start_at"]).total_seconds())
        since = f"since {time_zone.moment(row['start_at'])} ({length})"
        reason = f": {row['reason']}" if row["reason"] else ""
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.badge(row["state"].capitalize(), color="red" if row["state"] == "down" else "orange")
            st.markdown(theme.markdown_text(f"{since}{reason}"))
