-- One request of a serving engine or gateway, from a request log. Of several rows of a request the last end wins.
-- grain: cluster, endpoint, request_id
-- keep: end_at
-- times: by arrival_at; observed first_token_at, end_at
create table raw.serving_requests (
    source varchar not null,
    cluster varchar,
    endpoint varchar not null,          -- '': the log does not say
    request_id varchar not null,        -- as logged; a digest of the row where the log has none
    arrival_at timestamp not null,
    first_token_at timestamp,           -- null: no token was sent, or the log does not say
    end_at timestamp,                   -- null: still running, or the log does not say
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,               -- of input_tokens, found in a cache
    model varchar not null,             -- '': the log does not say
    status varchar,                     -- ok, error, aborted; null: not known
    error varchar,                      -- as logged
    tenant varchar,                     -- user or key, as the site writes it
    load_sequence bigint not null       -- state.ingested: the load that wrote the row as it is
);
