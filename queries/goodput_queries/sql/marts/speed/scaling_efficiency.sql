-- How well each workload scales: its usual speed a GPU at each size against its smallest size on the same GPU model.
-- grain: cluster, workload, params, gpu_models, speed_unit, gpus
-- access: team
-- smallest_gpus: the size that it is held against
-- efficiency_ratio: of that at the smallest size; 1 there
-- idle_gpus: GPUs that add nothing at this efficiency
-- usual_comm_ratio: exposed communication of the retained steps that measure it; null: not measured
-- twice_comm_ratio: that share at twice the size, of the largest size that measures it: extrapolated by the logarithm of the number
--  of GPUs from two sizes or more. An estimate: at a border of a node or rack it jumps; null: of other sizes
-- advice: what to do with it
with sized as (
    select
        *,
        first_value(gpus) over by_size as smallest_gpus,
        usual_speed / gpus / first_value(usual_speed / gpus) over by_size as efficiency_ratio,
        count(*) over same as sizes,
        case when usual_comm_ratio is not null and gpus = max(gpus) filter (where usual_comm_ratio is not null) over same
            then greatest(least(
                regr_intercept(usual_comm_ratio, log2(gpus)) over same
                    + regr_slope(usual_comm_ratio, log2(gpus)) over same * log2(2 * gpus), 1), 0)
        end as twice_comm_ratio
    from marts.baselines
    where speed_unit <> 'steps'
    window
        by_size as (partition by cluster, workload, params, gpu_models, speed_unit order by gpus),
        same as (partition by cluster, workload, params, gpu_models, speed_unit)
)

select
    cluster,
    workload,
    params,
    gpu_models,
    speed_unit,
    gpus,
    smallest_gpus,
    runs,
    usual_speed,
    efficiency_ratio,
    gpus * greatest(1 - efficiency_ratio, 0) as idle_gpus,
    usual_comm_ratio,
    twice_comm_ratio,
    case
        when gpus = smallest_gpus then 'the smallest size'
        when efficiency_ratio < threshold('scaling_efficiency_min')
            then 'do not scale yet: ' || counted(round(gpus * (1 - efficiency_ratio))::bigint, 'GPU')
                || ' of ' || gpus || ' add nothing'
        else 'scales'
    end as advice
from sized
where sizes > 1
