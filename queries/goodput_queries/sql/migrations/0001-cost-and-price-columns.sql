-- Columns of money are called cost or price instead of cost; the currency is a column of its own.
alter table if exists raw.rates rename price_per_gpu_h to price_per_gpu_h;
alter table if exists raw.tariffs rename price_per_kwh to price_per_kwh;
alter table if exists raw.budgets rename cost_per_month to cost_per_month;
alter table if exists raw.statement_days rename billed_cost to billed_cost;
alter table if exists raw.statement_prices rename list_price_per_gpu_h to list_price_per_gpu_h;
alter table if exists raw.statement_prices rename price_per_gpu_h to price_per_gpu_h;
alter table if exists raw.statement_tariffs rename price_per_kwh to price_per_kwh;
alter table if exists raw.statement_tariffs rename price_per_wall_kwh to price_per_wall_kwh;
alter table if exists raw.statement_rows rename list_price_per_gpu_h to list_price_per_gpu_h;
alter table if exists raw.statement_rows rename price_per_gpu_h to price_per_gpu_h;
alter table if exists raw.statement_rows rename direct_cost to direct_cost;
alter table if exists raw.statement_rows rename idle_share_cost to idle_share_cost;
alter table if exists raw.statement_rows rename electricity_cost to electricity_cost;
alter table if exists raw.statement_rows rename direct_billed_cost to direct_billed_cost;
alter table if exists raw.statement_rows rename idle_share_billed_cost to idle_share_billed_cost;
alter table if exists raw.statement_rows rename electricity_billed_cost to electricity_billed_cost;
alter table if exists raw.statement_rows rename billed_cost to billed_cost;
