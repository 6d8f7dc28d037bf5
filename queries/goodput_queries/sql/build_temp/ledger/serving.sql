-- What serving telemetry says of each unit of this pass: nothing, unless a package has a stage of this name.
-- grain: unit, start_ms
-- materialised: inline
select null::integer as unit, null::integer as number, null::bigint as start_ms, null::bigint as end_ms where false
