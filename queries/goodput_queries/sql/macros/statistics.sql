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

-- Student's t of 97.5 %, from 3 degrees of freedom on to 4 % (Cornish and Fisher 1938).
create or replace macro student_t(freedom) as (
    1.96 + 2.372 / freedom + 2.823 / (freedom * freedom)
);

-- The 95 % interval, {low, high}, of the hours that an amount takes, of which `hours` hours did `mean` each with this
-- standard deviation: the t at which amount = mean * t -+ student_t * deviation * sqrt(t + t * t / hours).
-- high: null where so few hours, or so unlike each other, set no end
create or replace macro hours_until(amount, mean, deviation, hours) as (
    list_transform(
        [pow(student_t(hours - 1) * deviation, 2)],
        lambda variance: list_transform(
            [{
                'a': mean * mean - variance / hours,
                'b': amount * mean + variance / 2,
                'root': sqrt(variance * (amount * mean + variance / 4 + amount * amount / hours))
            }],
            lambda of: {
                'low': amount * amount / (of.b + of.root),
                'high': case when of.a > 0 then (of.b + of.root) / of.a end
            }
        )[1]
    )[1]
);

-- `1 error`, `2 errors`.
create or replace macro counted(n, thing) as (
    n || ' ' || thing || case when n = 1 then '' when ends_with(thing, 's') or ends_with(thing, 'ch') then 'es' else 's' end
);
