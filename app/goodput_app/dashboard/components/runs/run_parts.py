"""Parts of the run page: its heading with the verdict, its GPUs, its lineage."""

from typing import Any

import polars as pl
import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import places, tables
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.table_columns import headers
from goodput_app.text import headline, units

STATE_COLOURS: dict[str, theme.Badge] = {
    "COMPLETED": "green",
    "RUNNING": "blue",
    "FAILED": "red",
    "TIMEOUT": "red",
    "NODE_FAIL": "red",
}
GPUS = headers("run.gpus")
SERVED = "Serving requests"  # of engines, whose time has no steps
ATTEMPTS = headers("run.attempts")


def heading(run: dict[str, Any]) -> None:
    """Draw name, state and owner of a run."""
    name, other_name = names(run)
    st.title(theme.markdown_text(name), anchor=False)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        state = "RUNNING" if run["is_running"] else run["state"] or "state not known"
        st.badge(theme.markdown_text(state), color=STATE_COLOURS.get(state, "gray"))
        owner = [other_name, run["team"], run["user_name"], run["partition"], run["cluster"]]
        st.caption(" / ".join(theme.markdown_text(part) for part in owner if part))
        end = "now" if run["is_running"] else time_zone.moment(run["last_end_at"])
        st.caption(f"{time_zone.moment(run['first_start_at'])} to {end}")


def names(run: dict[str, Any]) -> tuple[str, str | None]:
    """Return what a run is called and its other name: a number names it only without a job name."""
    run_id, job_name = run["run_id"], run["job_name"]
    return (job_name, run_id) if run_id.isdigit() and job_name else (run_id, job_name)


def of_finding(found: pl.DataFrame, run: dict[str, Any]) -> None:
    """Draw the verdict on a run: its largest finding, with the way to it.

    found: marts.run_verdicts of the run. run: its row of marts.runs
    """
    if found.is_empty():
        open_ms, held_ms = run["unsettled_ms"], run["held_ms"]
        share = f" {units.percent(open_ms / held_ms)} of its allocated time is unclassified."
        st.info(f"No loss of this run is large enough for a finding.{share if open_ms else ''}")
        return
    row = found.row(0, named=True)
    cause = f" ({theme.markdown_text(row['cause'])})" if row["cause"] else ""
    st.info(
        f"**{theme.markdown_text(row['title'])}**{cause}. {theme.markdown_text(row['confidence'])};"
        f" evidence: {theme.markdown_text(row['evidence'])}.  \n"
        f"What to do: {theme.markdown_text(row['what_to_do'])}.",
        icon=":material/gavel:",
    )
    places.to_page(finding_parts.PAGE, "Open the finding", "flag", finding=row["finding_key"])


def forecast(frame: pl.DataFrame) -> None:
    """Say how far a run is that goes on and when it will end; `frame`: marts.run_forecasts."""
    for row in frame.iter_rows(named=True):
        st.caption(theme.markdown_text(forecast_text(row)))


def forecast_text(row: dict[str, Any]) -> str:
    """Return how far a run is, when it ends and for how much; of a row of marts.run_forecasts."""
    share = units.percent(row["progress_ratio"])
    said, pace = f"Its trainer reports {share} of the work as done.", "As the trainer expects"
    if row["done_steps"] is not None:
        said = f"Step {row['done_steps']:,} of {row['planned_steps']:,} ({share})."
        pace = "At the pace of its last day"
    known = [
        f"{when} {time_zone.moment(row[f'{which}_end_at'])}"
        + (f" for another {units.cost(cost)}" if (cost := row[f"{which}_rest_cost"]) else "")
        for when, which in (
            (f"{pace} it ends on", "expected"),
            ("if nothing stops it on", "earliest"),
        )
        if row[f"{which}_end_at"] is not None
    ]
    if row["low_end_at"] is not None:
        known.append(_interval(row))
    return f"{said} {', '.join(known)}." if known else said


def _interval(row: dict[str, Any]) -> str:
    """Return between which times a run ends in 95 of 100 cases, and what that costs."""
    low, high = row["low_end_at"], row["high_end_at"]
    said = f"with 95 % probability after {time_zone.moment(low)}"
    if high is None:
        return f"{said}, with no latest time: its hours are too unlike each other"
    costs = [row[f"{end}_rest_cost"] for end in ("low", "high")]
    price = f" for {' to '.join(map(units.cost, costs))}" if all(costs) else ""
    return f"{said} and before {time_zone.moment(high)}{price}"


def wall_clock(run: dict[str, Any], frame: pl.DataFrame) -> None:
    """Draw the run's goodput as other tools define it.

    run: its row of marts.runs. frame: its row of marts.run_wall_clock, or none.
    """
    if frame.is_empty():
        return
    parts = frame.row(0, named=True)
    lost = ", ".join(
        f"{label} {units.duration(parts[f'{label}_ms'] / 1000)}"
        for label in ("lost", "rescheduling", "resuming", "saving")
        if parts[f"{label}_ms"]
    )
    google = units.percent(run["google_goodput_ratio"])
    nvcre = units.percent(parts["nvcre_goodput_ratio"])
    st.caption(
        f"As other tools define goodput, of wall clock: Google's library {google}, NVIDIA Cluster "
        f"Readiness Engine {nvcre}{f' ({lost})' if lost else ''}."
    )


def executing_idle(frame: pl.DataFrame) -> None:
    """Say how long the run's programs were loaded and nothing ran. frame: marts.executing_idle."""
    said = headline.executing_idle(int(frame["idle_ms"].sum()), int(frame["held_ms"].sum()))
    if said is not None:
        st.caption(theme.markdown_text(said))


def communication(frame: pl.DataFrame) -> None:
    """Say how much communication the steps can hold at most; `frame`: marts.communication."""
    for row in frame.iter_rows(named=True):
        if row["comm_at_most_ms"] is not None:
            share = units.percent(row["comm_at_most_ratio"])
            st.caption(
                f"Communication in steps: at most {units.gpu_time(row['comm_at_most_ms'])} "
                f"({share} of the step time that the NCCL profiler timed; "
                "it does not say what ran at the same time)."
            )


def served(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a run of serving engines: what the ledger has as steps is called by its name.

    frame: category and label
    """
    is_step = pl.col("category") == "step_unsplit"
    label = pl.when(is_step).then(pl.lit(SERVED)).otherwise("label")
    return frame.with_columns(label=label)


def gpus(frame: pl.DataFrame, *, is_serving: bool) -> None:
    """Draw the GPUs of a run; `frame`: marts.run_gpus."""
    empty = [name for name in GPUS if name.endswith(("_ms", "_errors")) and not frame[name].sum()]
    columns = GPUS.hiding((*GPUS.hidden, *empty))
    if is_serving:
        columns["step_ms"] = SERVED
    places.pick(frame, columns, "run_gpu", ("gpu_uuid",))


def lineage(frame: pl.DataFrame, *, is_serving: bool) -> int | None:
    """Draw the attempts of a run in order; return the selected one. `frame`: marts.attempts."""
    ids = frame["attempt"].cast(pl.String)
    columns = [name for name in ATTEMPTS if name.endswith("_steps")] if is_serving else []
    picked = tables.pick(frame, ATTEMPTS.without(columns), "attempt", ids)
    if picked is None:
        return None
    places.facts(picked, ATTEMPTS.details)
    number: int = picked["attempt"]
    return number
