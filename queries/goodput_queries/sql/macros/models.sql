-- Whether a GPU model ('NVIDIA H100 80GB HBM3') is of a kind ('h100') as people and schedulers name it: whole
-- words, so that A10 is not A100.
create or replace macro is_model(model, kind) as (
    regexp_matches(
        lower(model), '(^|[^a-z0-9])' || regexp_escape(lower(kind)) || '([^a-z0-9]|$)'
    )
);
