-- The scope's serving engines in the window: none, unless a package has a mart of this name.
-- grain: run_key
-- access: team
-- pause_ms: without a request
select null::varchar as run_key, null::bigint as pause_ms, null::double as gpus where false
