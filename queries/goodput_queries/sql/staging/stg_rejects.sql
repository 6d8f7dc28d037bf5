-- Rejected rows with the reason.
-- grain: none
select source, reason from raw.rejects
