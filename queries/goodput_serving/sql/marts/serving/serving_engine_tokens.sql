-- The scope's serving engines with what of them counts in totals: prefill and decode engines both count the tokens of a request,
-- and so does the frontend before them.
-- grain: cluster, endpoint, engine, model
-- access: team
-- evaluated: first
-- is_counted: a frontend counts where no engine of the model reports
-- counted_input_tokens, counted_output_tokens: of prefill and of decode, where engines of both report; null: counted elsewhere
-- input_share_ratio: share of cost and energy that is put on input: by role, on engines of both by the seconds that their
--  requests spent in prefill and in decode; null: these are not reported
with engines as (
    select * from marts.serving_engines
),

roles as (
    select
        cluster,
        model,
        bool_or(role = 'prefill') as has_prefill,
        bool_or(role = 'decode') as has_decode,
        bool_or(role <> 'frontend') as has_engine
    from engines
    group by cluster, model
),

parts as (
    select
        engines.*,
        engines.role <> 'frontend' or not roles.has_engine as is_counted,
        case
            when engines.role = 'prefill' then 1.0
            when engines.role = 'decode' and roles.has_prefill then 0.0
            else engines.prefill_s / nullif(engines.prefill_s + engines.decode_s, 0)
        end as input_share_ratio,
        engines.role = 'decode' and roles.has_prefill as is_later_part,
        engines.role = 'prefill' and roles.has_decode as is_earlier_part
    from engines
    inner join roles using (cluster, model)
)

select
    *,
    case when not is_later_part then input_tokens end as counted_input_tokens,
    case when not is_earlier_part then output_tokens end as counted_output_tokens
from parts
