-- Columns of money are called cost or price instead of usd; the currency is a column of its own.
alter table if exists raw.rates rename usd_per_gpu_h to price_per_gpu_h;
alter table if exists raw.tariffs rename usd_per_kwh to price_per_kwh;
alter table if exists raw.budgets rename usd_per_month to cost_per_month;
alter table if exists raw.statement_days rename billed_usd to billed_cost;
alter table if exists raw.statement_prices rename list_usd_per_gpu_h to list_price_per_gpu_h;
alter table if exists raw.statement_prices rename usd_per_gpu_h to price_per_gpu_h;
alter table if exists raw.statement_tariffs rename usd_per_kwh to price_per_kwh;
alter table if exists raw.statement_tariffs rename usd_per_wall_kwh to price_per_wall_kwh;
alter table if exists raw.statement_rows rename list_usd_per_gpu_h to list_price_per_gpu_h;
alter table if exists raw.statement_rows rename usd_per_gpu_h to price_per_gpu_h;
alter table if exists raw.statement_rows rename direct_usd to direct_cost;
alter table if exists raw.statement_rows rename idle_share_usd to idle_share_cost;
alter table if exists raw.statement_rows rename electricity_usd to electricity_cost;
alter table if exists raw.statement_rows rename direct_billed_usd to direct_billed_cost;
alter table if exists raw.statement_rows rename idle_share_billed_usd to idle_share_billed_cost;
alter table if exists raw.statement_rows rename electricity_billed_usd to electricity_billed_cost;
alter table if exists raw.statement_rows rename billed_usd to billed_cost;
