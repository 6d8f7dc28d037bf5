-- What stretches of steps consist of, as intervals with a sign (macros/amounts.sql): the time of a category in any
-- part of a stretch is their sum in it.
-- grain: none (intervals of one attempt)
-- sign: 1: counts; -1: taken from the steps by what a split has
with timeline as (
    from intermediate.int_run_timeline
),

splits as (
    from intermediate.int_step_splits
)

from signed_pieces('timeline', 'splits')
