-- A job run: one scheduler record (one start of a job; a requeue makes another), as the accounting reports it.
-- Records that never started are kept: they are the demand.
-- A requeue and a resize submit the job again, so that the submit time distinguishes records of one job; the
-- database index does not, since the JSON of the accounting lacks it.
-- grain: source, cluster, job_id_raw, submit_at
-- Of a record that has ended the accounting knows more than the listing of a controller, however late that is.
-- keep: end_at is not null, start_at is not null, end_at is not null and is_listed is null, observed_at, end_at, elapsed_s, db_index
-- times: observed submit_at, start_at, end_at, observed_at; planned eligible_at
create table raw.job_runs (
    source varchar not null,
    cluster varchar not null,
    job_id varchar not null,            -- 7, 10_3, 12+1, 53_[1-20%2]
    job_id_raw varchar not null,
    db_index bigint,                    -- null: from a listing without it
    submit_at timestamp not null,
    eligible_at timestamp,
    start_at timestamp,                 -- null: never started
    end_at timestamp,                   -- null: running or pending at observed_at
    state varchar not null,             -- first word, upper case
    exit_code varchar,
    derived_exit_code varchar,
    reason varchar,
    job_name varchar,
    user_name varchar,
    account varchar,
    partition varchar,
    qos varchar,
    reservation varchar,
    cancelled_by varchar,               -- uid or name behind CANCELLED by
    user_id varchar,
    nodes varchar[],                    -- expanded; empty: none assigned
    gpus integer,                       -- allocated; null: GPUs are not tracked in accounting
    gpu_type varchar,                   -- of the typed TRES, if one
    gpus_requested integer,
    gpu_type_requested varchar,
    cpus integer,
    cpus_requested integer,
    elapsed_s bigint,
    suspended_s bigint,
    time_limit_s bigint,
    restarts integer,
    is_time_ambiguous boolean,          -- start or end in the hour that comes twice, and nothing settles which
    flags varchar,
    comment varchar,
    alloc_tres varchar,
    req_tres varchar,
    observed_at timestamp,              -- when the accounting was asked, if known
    is_listed boolean,                  -- true: as the controller lists it; null: as the accounting has it
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
