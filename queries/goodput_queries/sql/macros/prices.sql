-- Milliseconds that two times have in common; below 0: how far they are apart.
create or replace macro overlap_ms(start_ms, end_ms, from_ms, to_ms) as (
    least(end_ms, to_ms) - greatest(start_ms, from_ms)
);

-- Mean price of time: the sum of milliseconds times their price over those that have one; unknown where more than a
-- thousandth of all_ms has none.
create or replace macro mean_price(ms_price, priced_ms, all_ms) as (
    case when priced_ms > 0.999 * all_ms then ms_price / priced_ms end
);
