-- Serving endpoints of the scope: none, unless a package has a mart of this name.
-- grain: run_key
-- access: team
select null::varchar as run_key where false
