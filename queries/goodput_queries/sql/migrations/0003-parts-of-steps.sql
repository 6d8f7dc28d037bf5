-- Lengths of parts of steps (forward, backward, optimizer) moved from other fields of job events to columns.
alter table raw.job_events add column if not exists fwd_s double;
alter table raw.job_events add column if not exists bwd_s double;
alter table raw.job_events add column if not exists opt_s double;
update raw.job_events set
    fwd_s = try_cast(extra ->> '$.fwd_s' as double),
    bwd_s = try_cast(extra ->> '$.bwd_s' as double),
    opt_s = try_cast(extra ->> '$.opt_s' as double),
    extra = nullif(json_merge_patch(extra, '{"fwd_s": null, "bwd_s": null, "opt_s": null}')::varchar, '{}')::json
where regexp_matches(extra::varchar, '"(fwd|bwd|opt)_s"');
