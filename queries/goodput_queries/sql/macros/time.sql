-- Lengths, and the end of what has none: the largest number of 64 bits.
create or replace macro forever_ms() as 9223372036854775807;
create or replace macro one_day_ms() as 86400000;
create or replace macro one_hour_ms() as 3600000;
create or replace macro ten_minutes_ms() as 600000;

-- Epoch milliseconds (UTC) of a timestamp since 1970, floored: the one place where boundaries become integers.
-- Half the price of `epoch_ms`, and a build asks it of every reading.
create or replace macro to_ms(moment) as (epoch_us(moment) // 1000);
create or replace macro from_ms(ms) as make_timestamp(ms * 1000);

-- The latest moment that a timestamp has.
create or replace macro latest_at() as make_timestamp(9223372036854775000);

-- A threshold by name (reference.thresholds), for the SQL of people: views and stages have its value in its place
-- (catalog/thresholds.py).
create or replace macro threshold(threshold_name) as (
    select value from reference.thresholds where name = threshold_name
);

-- Milliseconds of [start_ms, end_ms) that belong to the holder of the share from lo/den to hi/den of a
-- GPU: additive wherever one cuts, and the shares of a GPU add up to the whole.
create or replace macro share_ms(start_ms, end_ms, lo, hi, den) as (
    ((hi * end_ms) // den - (hi * start_ms) // den) - ((lo * end_ms) // den - (lo * start_ms) // den)
);

-- Whether the dates of an inventory file cover a report of another source; one without a date is as old as it can be,
-- and covered where the file has no end.
create or replace macro is_dated_by(from_ms, until_ms, reported_ms) as (
    coalesce(reported_ms, forever_ms() - 1) >= coalesce(from_ms, 0)
    and coalesce(reported_ms, forever_ms() - 1) < coalesce(until_ms, forever_ms())
);

-- The instance whose readings are those of a unit: readings of a GPU or MIG instance in shares are of all of it.
create or replace macro read_instance(gpu_instance) as (
    case when contains(gpu_instance, 'share.') then regexp_replace(gpu_instance, '(^|/)share[.].*$', '') else gpu_instance end
);
