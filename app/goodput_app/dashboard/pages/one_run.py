"""Run: why it is slow or dead."""

import streamlit as st

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import (
    charts,
    flag_parts,
    places,
    scope_bar,
    states,
    telemetry_parts,
    tiles,
)
from goodput_app.dashboard.components.fleet import configuration
from goodput_app.dashboard.components.runs import (
    failure_parts,
    pipeline_parts,
    run_axis,
    run_before,
    run_parts,
    speed_parts,
)
from goodput_app.dashboard.components.states import panel
from goodput_app.dashboard.data import energy, failures, findings, health, marts, serving, speed
from goodput_app.dashboard.figures import ledger as figures
from goodput_app.dashboard.figures import runs as figures_runs

view = scope_bar.required_view()
scope = view.scope
if scope.run is None:
    st.title("Run", anchor=False)
    st.info("Choose a run above, or on the page Runs.", icon=":material/monitoring:")
    st.stop()

with st.container(horizontal=True):
    places.to_page("pages/all_runs.py", "All runs", "arrow_back", run=None)
    label = "Compare with another run"
    places.to_page("pages/before_and_after.py", label, "compare_arrows", run=None, b=scope.run)
is_serving = False  # without a step, rank or collective
with panel("", "marts.runs"):
    runs = marts.runs(scope)
    if runs.is_empty():
        st.info("This run had no GPU in this time range.", icon=":material/hourglass_empty:")
        st.stop()
    run = runs.row(0, named=True)
    is_serving = serving.is_of_run(scope) and marts.train_steps(scope).is_empty()
    run_parts.heading(run)
    flag_parts.title(run_key=scope.run)
    verdict, before = st.columns([2.4, 1], gap="small")
    with verdict:
        run_parts.of_finding(findings.run_verdicts(scope), run)
    with before:
        run_before.draw(scope)
    tiles.of_run(run, is_serving=is_serving)
    run_parts.forecast(marts.run_forecasts(scope))
    run_parts.wall_clock(run, marts.run_wall_clock(scope))
attempts = marts.attempts(scope)
last_attempt = failures.failed_last(attempts, scope)
if last_attempt is not None:
    with panel("Why it failed", "marts.attempt_causes", help="Of the last attempt."):
        failure_parts.of_attempt(scope, last_attempt)
with panel("", "marts.run_speed"):
    of_steps = speed.run_speed(scope)
    if not of_steps.is_empty():
        speed_parts.of_run(of_steps.row(0, named=True))
with panel(
    "Ledger", "marts.run_categories", help="All GPU time allocated to the run, by category."
):
    ledger = marts.run_categories(scope)
    ledger = ledger.filter(ledger["run_key"] == scope.run)
    ledger = run_parts.served(ledger) if is_serving else ledger
    charts.draw(
        figures.ledger_bar(ledger),
        ledger.drop("colour"),
        "run-ledger",
        "The run's GPU time by category",
    )
    run_parts.executing_idle(energy.executing(scope))
with panel(
    "On one time axis",
    "marts.run_timeline",
    help="A lane for each attempt; below it steps and the telemetry of the run's GPUs.",
):
    run_axis.draw(view, is_serving=is_serving)
if not is_serving:
    with panel(
        "Step times",
        "marts.train_steps",
        help="The gang's, from the earliest start to the latest end.",
    ):
        steps = marts.train_steps(scope)
        if steps.is_empty():
            st.info("No steps were recorded for this run.", icon=":material/hourglass_empty:")
            states.say_which_readings("marts.reading_rhythm")
            speed_parts.rhythm(speed.inferred_steps(scope))
        else:
            charts.draw(
                figures.step_times(steps),
                steps,
                "step-times",
                "Time of each step, with its baseline",
            )
            if steps["steps"][0] > steps.height:
                st.caption(
                    f"The slowest and the fastest of each stretch of {steps['steps'][0]:,} steps."
                )
            run_parts.communication(marts.communication(scope))
            places.table("speed.changes", speed.step_changes(scope))
            speed_parts.epochs(speed.run_epochs(scope))
        speed_parts.feed(speed.run_input(scope))
        failure_parts.losses(scope)
    if not (reported := speed.run_metrics(scope)).is_empty():
        with panel(
            "Reported metrics", "marts.run_metrics", help="Numbers of the job that nothing judges."
        ):
            places.table("run.metrics", reported)
ranks = "GPUs over time" if is_serving else "Ranks over time"
with panel(ranks, "marts.rank_lateness", help=None if is_serving else "Own work above the median."):
    run_axis.ranks(view, is_serving=is_serving)
if not is_serving:
    with panel("Collectives", "marts.collective_timeline", help="When each rank was in which one."):
        run_axis.collectives(view)
    with panel(
        "Stragglers", "marts.stragglers", help="Episodes in which the others waited for one rank."
    ):
        late = marts.stragglers(scope)
        if late.is_empty() and marts.train_steps(scope).is_empty():
            st.caption("Stragglers are not known: no job event reports steps of this run.")
        elif late.is_empty():
            st.caption("No rank was late enough to be a straggler.")
        else:
            charts.draw(
                figures_runs.straggler_lanes(late),
                late,
                "late-ranks",
                "When each straggler was late",
            )
            st.caption("Behind a bar: GPU time that other ranks lost.")
replay = speed.pipeline_replay(scope)
if not replay.is_empty():
    with panel(
        "Ideal step",
        "marts.pipeline_replays",
        help="Steps of a trace of all workers, replayed as if no worker were slower than another.",
    ):
        pipeline_parts.draw(
            replay.row(0, named=True),
            speed.pipeline_workers(scope),
            speed.pipeline_timeline(scope),
            speed.pipeline_bubbles(scope),
        )
slow_gpus = marts.blast_radius(scope)
if not is_serving or slow_gpus.height:
    with panel(
        "Throttled and faulty GPUs",
        "marts.blast_radius",
        help="GPU time that each lost itself, and that other GPUs of the run waited for it.",
    ):
        places.table("run.slow_gpus", telemetry_parts.with_reasons(slow_gpus))
with panel("GPUs", "marts.run_gpus"):
    speed_parts.memory(speed.memory_growth(scope))
    run_parts.gpus(marts.run_gpus(scope), is_serving=is_serving)
configuration.draw(health.settings(scope))
with panel("Attempts and restarts", "marts.attempts"):
    attempt = run_parts.lineage(attempts, is_serving=is_serving)
if attempt not in (None, last_attempt) or (
    last_attempt is None and not failures.causes(scope).is_empty()
):
    with panel(
        "Why the attempt failed",
        "marts.attempt_causes",
        help="Of the attempt selected above, else of the last one that failed.",
    ):
        failure_parts.of_attempt(scope, attempt, key="selected_")
st.caption(f"Run {theme.markdown_text(scope.run)}, window {time_zone.window(view.start, view.end)}")
