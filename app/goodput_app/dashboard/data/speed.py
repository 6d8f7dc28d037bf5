"""How fast runs are inside their steps, and what holds them back."""

import polars as pl

from goodput_app.dashboard.data.marts import in_order, of_run, read, with_run_names
from goodput_queries.scope import EVERYTHING, Scope
from goodput_scenarios.comparison import compare
from goodput_scenarios.comparison.compare import Comparison
from goodput_scenarios.comparison.sides import Side

CHANGES_SHOWN = 100
GPUS_SHOWN = 100
WORKLOADS_SHOWN = 200


def throughputs(scope: Scope) -> pl.DataFrame:
    """Return tokens per second and MFU of each run that reports steps."""
    return read("select run_key, tokens_per_s, mfu_ratio from marts.run_speed", scope)


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


def step_changes(scope: Scope) -> pl.DataFrame:
    """Return the changes of step time of the scope's run, the largest loss first."""
    return read(
        "select * replace (round(score, 1) as score) from marts.step_changes where run_key = $1 "
        f"order by lost_gpu_ms desc, since_ms limit {CHANGES_SHOWN}",
        scope,
        scope.run,
    )


def memory_growth(scope: Scope) -> pl.DataFrame:
    """Return the GPUs of the scope's run whose memory grows, the first to be full first."""
    return read(
        "select * from marts.memory_growth where run_key = $1 order by time_to_full_s nulls last, "
        f"growth_bytes_per_h desc, node, gpu_uuid limit {GPUS_SHOWN}",
        scope,
        scope.run,
    )


def run_input(scope: Scope) -> pl.DataFrame:
    """Return what the hosts of the scope's run read for it; no row: nothing is known of them."""
    return read("select * from marts.run_input where run_key = $1", scope, scope.run)


def run_epochs(scope: Scope) -> pl.DataFrame:
    """Return the passes of the scope's run over its data, in order."""
    sql = "select * from marts.run_epochs where run_key = $1 order by epoch"
    return read(sql, scope, scope.run)


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


def pipeline_replay(scope: Scope) -> pl.DataFrame:
    """Return the replay of the scope's run: one row, or none where no trace of it was read."""
    return read("select * from marts.pipeline_replays where run_key = $1", scope, scope.run)


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


def pipeline_timeline(scope: Scope) -> pl.DataFrame:
    """Return the operations of one step of the scope's run, as recorded and in the ideal step."""
    return of_run("marts.pipeline_timeline", scope, "stage, start_s")


def pipeline_bubbles(scope: Scope) -> pl.DataFrame:
    """Return the bubbles of each stage in that step: marts.pipeline_bubbles."""
    return of_run("marts.pipeline_bubbles", scope, "stage")


def tokens_by_account(scope: Scope) -> pl.DataFrame:
    """Return the tokens of each account for its cost and energy, the most tokens first."""
    return in_order("marts.tokens_by_account", scope, "tokens desc, cluster, team")


def compared(a: Side, b: Side) -> Comparison:
    """Return the comparison of two sides."""
    return compare.compared(read, a, b)


def version_changes(scope: Scope) -> pl.DataFrame:
    """Return what changed from a run to the next one of its workload, the latest first."""
    order_by = "started_at desc, workload, label"
    found = in_order("marts.version_changes", scope, order_by, limit=CHANGES_SHOWN)
    found = with_run_names(found, scope, "run_before", "run_id_before")
    return with_run_names(found, scope)


def baselines(scope: Scope) -> pl.DataFrame:
    """Return the baseline of each workload, that with most runs first."""
    order_by = "runs desc, steps desc, workload, gpus"
    found = in_order("marts.baselines", scope, order_by, limit=WORKLOADS_SHOWN)
    for of in ("best", "last"):
        found = with_run_names(found, scope, f"{of}_run_key", f"{of}_run_id")
    return found


def scaling_efficiency(scope: Scope) -> pl.DataFrame:
    """Return how workloads scale, each from its smallest size on."""
    order_by = "workload, gpu_models, params, gpus"
    return in_order("marts.scaling_efficiency", scope, order_by, limit=WORKLOADS_SHOWN)


def speed_ups(scope: Scope) -> pl.DataFrame:
    """Return which GPU model is faster than which on the same workloads, the largest first."""
    order_by = "speed_up desc, old_model, new_model"
    return in_order(
        "marts.gpu_model_speed_ups", scope, order_by, limit=WORKLOADS_SHOWN, where="speed_up >= 1"
    )


def reference_results(scope: Scope) -> pl.DataFrame:
    """Return published results of benchmarks that the scope's runs ran, too."""
    order_by = "benchmark, gpus, published_time_s"
    return in_order(
        "marts.reference_results", scope, order_by, limit=WORKLOADS_SHOWN, where="own_runs > 0"
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
