-- The lake whose loads this database has: to which commit of each table.
-- grain: table_name
create table state.lake_versions (
    url varchar not null,               -- one lake only
    table_name varchar not null,        -- '' for the lake itself
    version bigint not null             -- of the last commit that was looked at; -1 for none
);
