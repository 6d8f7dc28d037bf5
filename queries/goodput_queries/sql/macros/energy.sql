-- The part inside [from_ms, to_ms) of the energy of [start_ms, end_ms), spread evenly over it: additive wherever one
-- cuts.
create or replace macro part_mj(energy_mj, start_ms, end_ms, from_ms, to_ms) as (
    energy_mj * (least(end_ms, to_ms) - start_ms) // (end_ms - start_ms)
    - energy_mj * (greatest(start_ms, from_ms) - start_ms) // (end_ms - start_ms)
);

-- The line of a statement that energy belongs to; is_inferred: of a job run whose ownership no scheduler or label gives.
create or replace macro energy_line(availability, job_run_key, is_inferred) as (
    case
        when availability = 'held' and (job_run_key is null or is_inferred) then 'inferred'
        when availability = 'held' then 'usage'
        when availability = 'free' then 'idle'
        else 'not_available'
    end
);

-- Energy times a price or intensity: at the node's meter where there is one, else of the GPUs' counters.
create or replace macro metered(wall_mj, energy_mj, per_wall_kwh, per_kwh) as (
    case when wall_mj is not null then wall_mj * per_wall_kwh else energy_mj * per_kwh end
);

-- Whether a GPU in this category of the ledger draws what an idle GPU draws.
create or replace macro is_idle_category(category, category_group) as (
    category_group in ('free', 'not_available') or category = 'idle_held'
);
