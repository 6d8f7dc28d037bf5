-- Statements moved from the schema raw to billing, and the product's own records to state.
create schema if not exists billing;
create schema if not exists state;

create table billing.statement_days (
    source varchar not null,
    day date not null,
    zone varchar not null,
    from_at timestamp not null,
    to_at timestamp not null,
    number integer not null,
    evidence_at timestamp not null,
    rows_id varchar not null,
    digest varchar not null,
    billed_cost decimal(18, 2) not null,
    policy varchar not null
);
create table if not exists raw.statement_days as from billing.statement_days;
insert into billing.statement_days by name from raw.statement_days;
drop table raw.statement_days;

create table billing.statement_prices (
    source varchar not null,
    cluster varchar not null,
    gpu_model varchar not null,
    mig_profile varchar not null,
    partition varchar not null,
    qos varchar not null,
    from_at timestamp not null,
    to_at timestamp not null,
    list_price_per_gpu_h decimal(18, 6) not null,
    factor decimal(18, 6) not null,
    price_per_gpu_h decimal(18, 6) not null
);
create table if not exists raw.statement_prices as from billing.statement_prices;
insert into billing.statement_prices by name from raw.statement_prices;
drop table raw.statement_prices;

create table billing.statement_rows (
    source varchar not null,
    rows_id varchar not null,
    position integer not null,
    line varchar not null,
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
    direct_cost decimal(38, 12),
    idle_share_cost decimal(38, 12),
    electricity_cost decimal(38, 12),
    direct_billed_cost decimal(18, 2),
    idle_share_billed_cost decimal(18, 2),
    electricity_billed_cost decimal(18, 2),
    billed_cost decimal(18, 2)
);
create table if not exists raw.statement_rows as from billing.statement_rows;
insert into billing.statement_rows by name from raw.statement_rows;
drop table raw.statement_rows;

create table billing.statement_tariffs (
    source varchar not null,
    cluster varchar not null,
    hour_at timestamp not null,
    price_per_kwh decimal(18, 9) not null,
    price_per_wall_kwh decimal(18, 9)
);
create table if not exists raw.statement_tariffs as from billing.statement_tariffs;
insert into billing.statement_tariffs by name from raw.statement_tariffs;
drop table raw.statement_tariffs;

create table state.dropped_readings (
    source varchar not null,
    hour_ms bigint not null,
    rows bigint not null
);
create table if not exists raw.dropped_readings as from state.dropped_readings;
insert into state.dropped_readings by name from raw.dropped_readings;
drop table raw.dropped_readings;

create table state.energy_archive (
    cluster varchar not null,
    job_run_key varchar,
    availability varchar not null,
    gpu_model varchar,
    mig_profile varchar,
    hour_ms bigint not null,
    energy_mj bigint,
    measured_ms bigint,
    is_metered boolean,
    wall_mj bigint
);
create table if not exists raw.energy_archive as from state.energy_archive;
insert into state.energy_archive by name from raw.energy_archive;
drop table raw.energy_archive;

create table state.event_hosts (
    cluster varchar,
    host varchar,
    first_ms bigint not null,
    last_ms bigint not null
);
create table if not exists raw.event_hosts as from state.event_hosts;
insert into state.event_hosts by name from raw.event_hosts;
drop table raw.event_hosts;

create table state.ingested (
    sequence bigint not null,
    source varchar not null,
    origin varchar not null,
    digest varchar not null,
    table_name varchar not null,
    rows bigint not null,
    rows_new bigint not null,
    rejects bigint not null,
    window_start_at timestamp,
    window_end_at timestamp,
    loaded_at timestamp not null
);
create table if not exists raw.ingested as from state.ingested;
insert into state.ingested by name from raw.ingested;
drop table raw.ingested;

create table state.kept_from (
    table_name varchar not null,
    kept_from_ms bigint not null
);
create table if not exists raw.kept_from as from state.kept_from;
insert into state.kept_from by name from raw.kept_from;
drop table raw.kept_from;

create table state.ledger_archive (
    cluster varchar not null,
    node varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    gpu_model varchar,
    mig_profile varchar,
    job_run_key varchar,
    attempt_key varchar,
    category varchar not null,
    phase varchar,
    hour_ms bigint not null,
    gpu_ms bigint not null
);
create table if not exists raw.ledger_archive as from state.ledger_archive;
insert into state.ledger_archive by name from raw.ledger_archive;
drop table raw.ledger_archive;

create table state.reading_series (
    source varchar not null,
    gpu_uuid varchar not null,
    gpu_instance varchar not null,
    series ubigint not null,
    first_ms bigint not null,
    last_ms bigint not null
);
create table if not exists raw.reading_series as from state.reading_series;
insert into state.reading_series by name from raw.reading_series;
drop table raw.reading_series;

create table state.source_status (
    source varchar not null,
    origin varchar not null,
    asked_at timestamp not null,
    answered_at timestamp,
    failing_since_at timestamp,
    failures integer not null,
    error varchar,
    interval_s double,
    retired_at timestamp
);
create table if not exists raw.source_status as from state.source_status;
insert into state.source_status by name from raw.source_status;
drop table raw.source_status;
