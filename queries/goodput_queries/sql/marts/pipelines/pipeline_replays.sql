-- What steps of a run would take without stragglers, from a trace of its workers' operations: the recorded step beside the
-- ideal one, in which each kind of operation takes as long on all workers, and what makes the difference. Waits move
-- between pipeline stages: who waits is not who is slow, so operations are replayed, not compared.
-- The parts of the difference (stage_s to delay_s) add up to it; they are found one after the other, in this order.
-- grain: run_key
-- access: team
-- skip_if_empty: raw.step_replays
-- run_id, data_ranks, stages, steps: of the trace; a worker is a data parallel rank of a pipeline stage
-- recorded_s: mean step as recorded; undelayed_s: the same where each operation starts when it can; ideal_s
-- slowdown_ratio: undelayed / ideal
-- stage_s: compute of stages differs; worker_s: of workers of a stage, in all steps; micro_batch_s: of micro-batches
-- communication_s: transfers over their median; delay_s: operations that start later than they could
-- slowest_stage; slowest_stage_share, slowest_workers_share: of the slowdown that goes without that stage, or the slowest 3 %
--  of workers (these overlap with each other)
-- forward_backward_correlation: of the lengths of one micro-batch; null: not known
-- cause: stage, worker, micro_batch, communication or delay, the largest part; null: no slowdown over the threshold
-- sentence: the slowdown and its cause with their numbers
with parts as (
    select
        replays.*,
        cluster || '/' || run_id as run_key,
        undelayed_s / nullif(ideal_s, 0) as slowdown_ratio,
        stage_means_s - ideal_s as stage_s,
        worker_means_s - stage_means_s as worker_s,
        compute_s - worker_means_s as micro_batch_s,
        undelayed_s - compute_s as communication_s,
        recorded_s - undelayed_s as delay_s
    from staging.stg_step_replays as replays
    where
        in_cluster(cluster)
        and (sees_all_teams() or cluster || '/' || run_id in (select run_key from intermediate.int_runs_of_one_team where of_teams(team)))
        and in_run(cluster || '/' || run_id)
),

caused as (
    select
        *,
        case
            when recorded_s < threshold('replay_slowdown') * ideal_s then null
            else list_reverse_sort([
                {'s': stage_s, 'cause': 'stage'},
                {'s': worker_s, 'cause': 'worker'},
                {'s': micro_batch_s, 'cause': 'micro_batch'},
                {'s': communication_s, 'cause': 'communication'},
                {'s': delay_s, 'cause': 'delay'}
            ])[1]
        end as largest
    from parts
)

select
    * exclude (
        source, trace_id, compute_s, worker_means_s, stage_means_s, without_slowest_stage_s,
        without_slowest_workers_s, largest
    ),
    (undelayed_s - without_slowest_stage_s) / nullif(undelayed_s - ideal_s, 0) as slowest_stage_share,
    (undelayed_s - without_slowest_workers_s) / nullif(undelayed_s - ideal_s, 0) as slowest_workers_share,
    largest.cause as cause,
    case
        when largest is null
            then format('{:.2f} times the ideal step: no stragglers', recorded_s / nullif(ideal_s, 0))
        else format(
            '{:.2f} times the ideal step ({:.2f} s for {:.2f} s); {} of the difference from {}',
            recorded_s / ideal_s, recorded_s, ideal_s,
            percent_text(largest.s / (recorded_s - ideal_s)),
            case largest.cause
                when 'stage' then 'uneven stages, stage ' || slowest_stage || ' is the slowest'
                when 'worker' then 'workers that are slow in all steps'
                when 'micro_batch'
                    then 'uneven micro-batches' || case
                        when forward_backward_correlation >= threshold('replay_sequence_correlation')
                            then ': forward and backward are long together, as with sequence lengths'
                        else ''
                    end
                when 'communication' then 'slow transfers'
                else 'operations that start late'
            end
        )
    end as sentence
from caused
