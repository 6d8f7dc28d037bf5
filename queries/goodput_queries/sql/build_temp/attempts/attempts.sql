-- The attempts that this build looks at: those of every run of which anything changed.
-- grain: attempt_key
select * from intermediate.int_attempts semi join temp.dirty_attempts using (attempt_key)
