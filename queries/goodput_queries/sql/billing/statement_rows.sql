-- Charged lines of closed days: see marts.statement_lines. Of a correction: the differences.
-- grain: rows_id, position
create table billing.statement_rows (
    source varchar not null,
    rows_id varchar not null,
    position integer not null,
    line varchar not null,              -- also credit, and idle_share (of an account that used nothing)
    cluster varchar not null,
    team varchar,
    user_name varchar,
    run_key varchar,
    partition varchar,
    qos varchar,
    gpu_model varchar,
    mig_profile varchar,
    list_price_per_gpu_h decimal(18, 6),
    factor decimal(18, 6),
    price_per_gpu_h decimal(18, 6),
    run_id varchar,
    job_name varchar,
    job_runs bigint not null,
    gpu_ms bigint not null,
    productive_ms bigint not null,
    other_use_ms bigint not null,
    own_waste_ms bigint not null,
    platform_waste_ms bigint not null,
    unsettled_ms bigint not null,
    idle_held_ms bigint not null,
    lost_ms bigint not null,
    credit_ms bigint not null,
    energy_mj bigint,
    measured_ms bigint,
    untariffed_mj bigint not null,
    wall_mj bigint,
    direct_cost decimal(38, 12),         -- before rounding, as the next two
    idle_share_cost decimal(38, 12),
    electricity_cost decimal(38, 12),
    direct_billed_cost decimal(18, 2),   -- in cents, as the next three: the delivered amounts
    idle_share_billed_cost decimal(18, 2),
    electricity_billed_cost decimal(18, 2),
    billed_cost decimal(18, 2),          -- null: no price
    adjustment_id varchar,               -- of a credit in billing.adjustments, as the next two; else null
    reason varchar,
    for_day date                         -- the closed day that it gives back cost of
);
