"""How fast runs are inside their steps, and what holds them back."""

import polars as pl

from goodput_app.dashboard.data.marts import read, reader, run_reader, with_run_names
from goodput_queries.scope import EVERYTHING, Scope
from goodput_scenarios.comparison import compare
from goodput_scenarios.comparison.compare import Comparison
from goodput_scenarios.comparison.sides import Side

CHANGES_SHOWN = 100
GPUS_SHOWN = 100
METRICS_SHOWN = 200
WORKLOADS_SHOWN = 200

_version_changes = reader(
    "version_changes", "started_at desc, workload, label", limit=CHANGES_SHOWN
)
_baselines = reader("baselines", "runs desc, steps desc, workload, gpus", limit=WORKLOADS_SHOWN)
throughputs = reader("run_speed", "run_key", columns="run_key, tokens_per_s, mfu_ratio")


def run_speed(scope: Scope) -> pl.DataFrame:
    """Return the speed of the scope's run beside peers, ceiling, costs and bound: one row."""
    return read(
        """select speed.*, peers.peers, peers.peer_ratio, peers.peer_reason,
            costs.tokens_per_cost, costs.cost_reason, costs.tokens_per_j, costs.energy_reason,
            bounds.bound_by, bounds.sentence as bound_sentence, bounds.dram_active_ratio,
            ceilings.* exclude (run_key, work, held_ms), roofs.* exclude (run_key)
        from marts.run_speed as speed
        left join marts.run_peers as peers using (run_key)
        left join marts.run_token_costs as costs using (run_key)
        left join marts.run_bounds as bounds using (run_key)
        left join marts.run_ceilings as ceilings using (run_key)
        left join marts.run_rooflines as roofs using (run_key)
        where run_key = $1""",
        scope,
        scope.run,
    )


def run_before(scope: Scope) -> tuple[str, bool] | None:
    """Return the key of a run of the same workload and size before the scope's run.

    That is the latest that did not fail, True, or where there is none the latest, False.
    """
    found = read(
        """select before.run_key, before.is_ok
        from marts.run_workloads as mine
        inner join marts.run_workloads as before
            on before.cluster = mine.cluster
            and before.team is not distinct from mine.team
            and before.workload = mine.workload
            and before.gpus = mine.gpus
            and before.start_ms < mine.start_ms
        where mine.run_key = $1
        order by before.is_ok desc, before.start_ms desc, before.run_key limit 1""",
        Scope(teams=scope.teams),
        scope.run,
    )
    return next(iter(found.rows()), None)


step_changes = run_reader(
    "step_changes",
    "lost_gpu_ms desc, since_ms",
    columns="* replace (round(score, 1) as score)",
    limit=CHANGES_SHOWN,
)
# the first to be full first
memory_growth = run_reader(
    "memory_growth",
    "time_to_full_s nulls last, growth_bytes_per_h desc, node, gpu_uuid",
    limit=GPUS_SHOWN,
)
run_input = run_reader("run_input", "run_key")
run_epochs = run_reader("run_epochs", "epoch")
run_metrics = run_reader("run_metrics", "metric", limit=METRICS_SHOWN)


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


pipeline_replay = run_reader("pipeline_replays", "run_key")


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


pipeline_timeline = run_reader("pipeline_timeline", "stage, start_s")
pipeline_bubbles = run_reader("pipeline_bubbles", "stage")
# by GPU model for all workloads, and for each with its class of price
work_by_model = reader("work_by_gpu_model", "held_ms desc, gpu_model, work_unit", where="is_total")
work_by_workload = reader(
    "work_by_gpu_model",
    "workload, work_unit, work_per_cost desc nulls last, gpu_model, price_class",
    where="not is_total",
    limit=WORKLOADS_SHOWN,
)
tokens_by_account = reader("tokens_by_account", "tokens desc, cluster, team")


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


scaling_efficiency = reader(
    "scaling_efficiency", "workload, gpu_models, params, gpus", limit=WORKLOADS_SHOWN
)
# the larger of two models that differ: a pair is in the view both ways
speed_ups = reader(
    "gpu_model_speed_ups",
    "speed_up desc, old_model, new_model",
    where="speed_up >= 1",
    limit=WORKLOADS_SHOWN,
)
# published results of benchmarks that the scope's runs ran, too
reference_results = reader(
    "reference_results",
    "benchmark, gpus, published_time_s",
    where="own_runs > 0",
    limit=WORKLOADS_SHOWN,
)


def run_notes(of: Comparison) -> pl.DataFrame:
    """Return the notes on the runs of both sides, the latest first."""
    keys = sorted({*of.a.runs["run_key"], *of.b.runs["run_key"]})
    return read(
        f"""select * from marts.run_notes where list_contains(string_split($1, chr(31)), run_key)
        order by said_at desc, run_key limit {CHANGES_SHOWN}""",
        EVERYTHING,
        "\x1f".join(keys),
    )
