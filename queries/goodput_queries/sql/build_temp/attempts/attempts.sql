-- The attempts that this build recomputes: all of every run with a change.
-- grain: attempt_key
-- skip_if_empty: temp.dirty_attempts
select * from intermediate.int_attempts semi join temp.dirty_attempts using (attempt_key)
