-- Who caused a stretch of the ledger, by the most specific evidence: the cause of a wait inside steps (its phase),
-- then why the attempt ended for what an ending costs, then the default of the category.
-- category_blame: of reference.gpu_second_categories; wait_blame, ending_blame: of reference.blame_by_cause
create or replace macro blame_of(category, category_blame, wait_blame, ending_blame) as (
    case
        when category = 'straggler_wait' then coalesce(wait_blame, category_blame)
        when category_blame = 'fault' then coalesce(ending_blame, 'own')
        -- the same stretch after the last step is a fault stall once it lasts longer
        when category = 'teardown' then coalesce(ending_blame, category_blame)
        else category_blame
    end
);

-- Rows of the ledger with who caused each: own, platform, use, unallocated, reservation, unsettled.
-- ledger, endings: names of relations with rows as marts.ledger_scoped and intermediate.int_attempt_causes; the latter is
-- evaluated first where it is named in a view, not in a macro
create or replace macro blamed(ledger, endings) as table (
    select
        scoped.*,
        blame_of(scoped.category, categories.blame, waits.blame, endings.blame) as blame
    from query_table(ledger) as scoped
    inner join reference.gpu_second_categories as categories using (category)
    left join query_table(endings) as endings using (attempt_key)
    left join reference.blame_by_cause as waits on waits.applies_to = 'wait' and scoped.phase = waits.cause
);
