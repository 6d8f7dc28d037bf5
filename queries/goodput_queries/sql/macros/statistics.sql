-- The probability of at most `n` events where `mean` are expected (Poisson).
create or replace macro poisson_cdf(n, mean) as (
    list_sum(list_transform(range(n::bigint + 1), lambda k: exp(k * ln(mean) - mean - lgamma(k + 1))))
);

-- The mean for which at most `n` events have this probability, by bisection to the last bits of a double.
create or replace macro poisson_mean(n, probability) as (
    list_reduce(
        range(60),
        lambda bounds, step: case
            when poisson_cdf(n, (bounds[1] + bounds[2]) / 2) > probability
                then [(bounds[1] + bounds[2]) / 2, bounds[2]]
            else [bounds[1], (bounds[1] + bounds[2]) / 2]
        end,
        [0.0, n + 12 + 12 * sqrt(n + 1)]::double[]
    )[1]
);

-- The exact 95 % interval of the expected number of events where `n` were counted (Garwood 1936): null for no number.
create or replace macro poisson_low(n) as (
    case when n = 0 then 0.0 when n > 0 then poisson_mean(n - 1, 0.975) end
);
create or replace macro poisson_high(n) as (
    case when n >= 0 then poisson_mean(n, 0.025) end
);

-- `1 error`, `2 errors`.
create or replace macro counted(n, thing) as (
    n || ' ' || thing || case when n = 1 then '' when ends_with(thing, 's') then 'es' else 's' end
);
