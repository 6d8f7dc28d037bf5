-- From when on a database of a lake has readings itself; earlier ones are in the lake alone.
-- grain: from_ms
create table state.lake_readings (
    from_ms bigint not null             -- epoch ms; one row, none in a database of no lake
);
