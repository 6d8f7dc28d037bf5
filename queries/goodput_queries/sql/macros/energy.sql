-- The part inside [from_ms, to_ms) of the energy of [start_ms, end_ms), spread evenly over it: additive wherever one
-- cuts.
create or replace macro part_mj(energy_mj, start_ms, end_ms, from_ms, to_ms) as (
    energy_mj * (least(end_ms, to_ms) - start_ms) // (end_ms - start_ms)
    - energy_mj * (greatest(start_ms, from_ms) - start_ms) // (end_ms - start_ms)
);

-- The part of an amount of [start_ms, end_ms) that lies inside the scope's window: additive over windows that follow
-- each other.
create or replace macro scope_part(amount, start_ms, end_ms) as (
    part_mj(
        amount,
        start_ms,
        end_ms,
        least(coalesce(getvariable('scope_from_ms')::bigint, start_ms), end_ms),
        greatest(coalesce(getvariable('scope_to_ms')::bigint, end_ms), start_ms)
    )
);
