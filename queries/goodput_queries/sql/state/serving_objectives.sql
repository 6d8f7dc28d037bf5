-- Serving objectives of the settings, as the last build had them: of a model the first whose pattern matches holds.
-- A build with others is a full build, since the ledger depends on them.
-- grain: place
create table state.serving_objectives (
    place integer not null,             -- its place among the objectives, from 0
    model varchar not null,             -- pattern of names of models, with * and ?
    ttft_s double,                      -- longest time to the first token; null: not asked
    inter_token_s double,               -- longest mean time between two tokens; null: not asked
    e2e_s double,                       -- longest time to the last token; null: not asked
    target double                       -- share of requests that is wanted within the objective; null: none
);
