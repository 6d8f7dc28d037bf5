-- Quantiles of a cumulative histogram. bounds: inclusive upper bounds, ascending, the last one infinity; counts: observations
-- up to each of them. Observation number ceil(q x n) lies in one bucket: its bounds enclose the quantile, whatever the
-- distribution. The estimate is the linear interpolation inside of it (Prometheus `histogram_quantile`).
create or replace macro quantile_rank(counts, q) as (greatest(ceil(q * counts[-1]::double - 1e-9), 1));
create or replace macro quantile_bucket(counts, q) as (
    list_position(list_transform(counts, lambda n: n >= quantile_rank(counts, q)), true)
);
create or replace macro quantile_low(bounds, counts, q) as (
    case when quantile_bucket(counts, q) = 1 then 0.0 else bounds[quantile_bucket(counts, q) - 1] end
);
-- Null: above the last finite bound.
create or replace macro quantile_high(bounds, counts, q) as (
    case when not isinf(bounds[quantile_bucket(counts, q)]) then bounds[quantile_bucket(counts, q)] end
);
create or replace macro quantile_estimate(bounds, counts, q) as (
    quantile_low(bounds, counts, q)
    + (quantile_high(bounds, counts, q) - quantile_low(bounds, counts, q))
    * (
        quantile_rank(counts, q)
        - case when quantile_bucket(counts, q) = 1 then 0 else counts[quantile_bucket(counts, q) - 1] end
    ) / (
        counts[quantile_bucket(counts, q)]
        - case when quantile_bucket(counts, q) = 1 then 0 else counts[quantile_bucket(counts, q) - 1] end
    )
);

-- How many observations were at most limit_s: at least those up to the highest bound not above it, at most those up to the lowest
-- bound not below it.
create or replace macro count_up_to_low(bounds, counts, limit_s) as (
    coalesce(counts[nullif(len(list_filter(bounds, lambda bound: bound <= limit_s)), 0)], 0)
);
create or replace macro count_up_to_high(bounds, counts, limit_s) as (
    counts[len(list_filter(bounds, lambda bound: bound < limit_s)) + 1]
);
