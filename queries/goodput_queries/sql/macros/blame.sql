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
