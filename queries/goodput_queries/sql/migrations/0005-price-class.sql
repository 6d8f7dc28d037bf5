-- Rates name their price class; the states of ranks of a communicator, which nothing read, are gone.
alter table raw.rates add column if not exists price_class varchar;
alter table raw.rate_factors add column if not exists price_class varchar;
drop table if exists raw.comm_states;
