"""How fast runs are inside their steps, and what holds them back."""

import polars as pl

from goodput_app.dashboard.data.marts import mart, read, with_run_names
from goodput_queries.scope import EVERYTHING, Scope
from goodput_scenarios.comparison import compare
from goodput_scenarios.comparison.compare import Comparison
from goodput_scenarios.comparison.sides import Side

CHANGES_SHOWN = 100

_version_changes = mart("version_changes")
_baselines = mart("baselines")
throughputs = mart("run_speed")


def run_speed(scope: Scope) -> pl.DataFrame:
    """Return the speed of the scope's run beside its peers, its costs and its bound: one row."""
    return read(
        """select speed.*, peers.peers, peers.peer_ratio, peers.peer_reason,
            costs.tokens_per_cost, costs.cost_reason, costs.tokens_per_j, costs.energy_reason,
            bounds.bound_by, bounds.sentence as bound_sentence
        from marts.run_speed as speed
        left join marts.run_peers as peers using (run_key)
        left join marts.run_token_costs as costs using (run_key)
        left join marts.run_bounds as bounds using (run_key)
        where run_key = $1""",
        scope,
        scope.run,
    )


def run_before(scope: Scope) -> str | None:
    """Return the key of the latest run of the same workload and size before the scope's run."""
    found = read(
        """select before.run_key
        from marts.run_workloads as mine
        inner join marts.run_workloads as before
            on before.cluster = mine.cluster
            and before.team is not distinct from mine.team
            and before.workload = mine.workload
            and before.gpus = mine.gpus
            and before.start_ms < mine.start_ms
        where mine.run_key = $1
        order by before.start_ms desc, before.run_key limit 1""",
        Scope(teams=scope.teams),
        scope.run,
    )
    return None if found.is_empty() else str(found.item())


step_changes = mart("step_changes")
# the first to be full first
memory_growth = mart("memory_growth")
run_input = mart("run_input")
run_epochs = mart("run_epochs")


def inferred_steps(scope: Scope) -> pl.DataFrame:
    """Return the step rhythm of each attempt of the scope's run, where it can be inferred.

    From its collectives; without them from SM activity that is read often.
    """
    return read(
        """with collectives as (
            select attempt, period_ms, error_ms, method, confidence
            from marts.inferred_steps where run_key = $1 and period_ms is not null
        )
        from collectives
        union all
        select attempt, period_ms, error_ms, method, confidence
        from marts.reading_rhythm
        where run_key = $1 and period_ms is not null
            and attempt not in (select attempt from collectives)
        order by attempt""",
        scope,
        scope.run,
    )


pipeline_replay = mart("pipeline_replays")


def pipeline_workers(scope: Scope) -> pl.DataFrame:
    """Return what each worker alone adds to the ideal step, with its GPU time and cost in the run.

    The share of the step is of the trace; it is applied to all retained steps of the window.
    """
    return read(
        """with steps as (
            select sum(gpu_ms) as gpu_ms, sum(cost) as cost
            from marts.run_categories where run_key = $1 and is_kept_step(category)
        )
        select workers.dp_rank, workers.stage, workers.step_s, workers.slowdown_ratio,
            workers.excess_share * steps.gpu_ms as excess_gpu_ms,
            workers.excess_share * steps.cost as excess_cost
        from marts.pipeline_workers as workers cross join steps
        where workers.run_key = $1 order by workers.place""",
        scope,
        scope.run,
    )


pipeline_timeline = mart("pipeline_timeline")
pipeline_bubbles = mart("pipeline_bubbles")
tokens_by_account = mart("tokens_by_account")


def compared(a: Side, b: Side) -> Comparison:
    """Return the comparison of two sides."""
    return compare.compared(read, a, b)


def version_changes(scope: Scope) -> pl.DataFrame:
    """Return what changed from a run to the next one of its workload, the latest first."""
    found = with_run_names(_version_changes(scope), scope, "run_before", "run_id_before")
    return with_run_names(found, scope)


def baselines(scope: Scope) -> pl.DataFrame:
    """Return the baseline of each workload, that with most runs first."""
    found = _baselines(scope)
    for of in ("best", "last"):
        found = with_run_names(found, scope, f"{of}_run_key", f"{of}_run_id")
    return found


scaling_efficiency = mart("scaling_efficiency")
# the larger of two models that differ: a pair is in the view both ways
speed_ups = mart("gpu_model_speed_ups")
# published results of benchmarks that the scope's runs ran, too
reference_results = mart("reference_results")


def run_notes(of: Comparison) -> pl.DataFrame:
    """Return the notes on the runs of both sides, the latest first."""
    keys = sorted({*of.a.runs["run_key"], *of.b.runs["run_key"]})
    return read(
        f"""select * from marts.run_notes where list_contains(string_split($1, chr(31)), run_key)
        order by said_at desc, run_key limit {CHANGES_SHOWN}""",
        EVERYTHING,
        "\x1f".join(keys),
    )
