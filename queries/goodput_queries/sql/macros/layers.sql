-- The layers of the ledger in one number, so that one sum has the state of all of them. Each has its bits:
-- activity 0-7, emptiness 8-15, doubts 16-31, fact 32-60, hold 61-91, piece 92-122, serving 123-126. The intervals of a layer do not
-- overlap, but for doubts, which are counted: a layer never outgrows its bits.
create or replace macro layer_activity(number) as (number::hugeint);
create or replace macro layer_emptiness(number) as (number::hugeint * 256);
create or replace macro layer_doubt() as (65536::hugeint);
create or replace macro layer_fact(number) as (number::hugeint * 4294967296);
create or replace macro layer_hold(number) as (number::hugeint * 2305843009213693952);
create or replace macro layer_piece(number) as (number::hugeint * 4951760157141521099596496896);
create or replace macro layer_serving(number) as (number::hugeint * 10633823966279326983230456482242756608);

create or replace macro activity_in(layers) as ((layers & 255)::integer);
create or replace macro emptiness_in(layers) as (((layers >> 8) & 255)::integer);
create or replace macro doubts_in(layers) as (((layers >> 16) & 65535)::integer);
create or replace macro fact_in(layers) as (((layers >> 32) & 536870911)::integer);
create or replace macro hold_in(layers) as (((layers >> 61) & 2147483647)::integer);
create or replace macro piece_in(layers) as (((layers >> 92) & 2147483647)::integer);
create or replace macro serving_in(layers) as ((layers >> 123)::integer);
