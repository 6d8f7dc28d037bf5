-- Archived energy says whether it was integrated from power readings.
alter table state.energy_archive add column if not exists is_integrated boolean;
