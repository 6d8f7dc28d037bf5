"""Who sees some teams only reads what is declared to be for them, however they write it."""

import pytest
from tests.tables import each

from goodput_queries.database import LocalStore
from goodput_queries.errors import NotPermittedError, QueryError
from goodput_queries.scope import Scope

LIMITED = Scope(teams=("red",))


@pytest.fixture(scope="module")
def store(empty_database):
    """Give an empty database, which is only read."""
    opened = LocalStore(empty_database, threads=1)
    yield opened
    opened.close()


# some name what is visible elsewhere only
@each(
    "from raw.job_runs", "table raw.job_runs", 'select * from "raw"."job_runs"',
    'select * from RAW . "JOB_RUNS"', "select * from goodput.raw.job_runs",
    "select * from marts.runs, raw.job_runs",
    "select * from marts.runs left join raw.job_runs using (job_id)",
    "select (select count(*) from raw.job_runs)", "select 1 where exists (from raw.job_runs)",
    "select * from marts.runs where run_key in (select job_id from raw.job_runs)",
    "select * from marts.runs order by (select max(job_id) from raw.job_runs)",
    "select 1 union all select count(*) from raw.job_runs",
    "with runs as (from raw.job_runs) from runs",
    "with runs as (with inner_ as (from raw.job_runs) from inner_) from runs",
    "with recursive n as (select 1 as a union all select a + 1 from n, raw.job_runs) from n",
    "select * from (with job_runs as (select 1) from job_runs), job_runs",
    "with job_runs as (from job_runs) from job_runs",
    "from (pivot raw.job_runs on state in ('FAILED') using count(*))",
    "pivot raw.job_runs on state using count(*)", "from (describe raw.job_runs)",
    "summarize raw.job_runs", "show tables", "explain from marts.runs",
    "explain analyze from marts.runs", "from temp.findings", "from findings",
    "from duckdb_tables()", "from duckdb_tables", "from information_schema.tables",
    "from pg_catalog.pg_tables", "from pragma_table_info('raw.job_runs')",
    "from query('from raw.job_runs')", "from query_table('raw.job_runs')",
    "from query_table(['raw.job_runs'])", "select * from marts.runs, lateral (from raw.job_runs)",
    "from read_csv('/etc/passwd')", "from read_text('/etc/passwd')", "from '/etc/passwd.csv'",
    "from glob('/*')", "from duckdb_settings()", "from duckdb_variables()", "select getenv('HOME')",
    "select system.main.getenv('HOME')", "select current_setting('temp_directory')",
    "select getvariable('goodput_objectives')", "select stats(team) from marts.runs",
    "select team.stats() from marts.runs",
    "select sum(a) filter (where stats(a) = '') from (values (1)) t(a)", "select pg_get_viewdef(1)",
    "set variable scope_teams = null", "select 1; from raw.job_runs",
    "select 'marts.findings' from raw.job_runs")  # fmt: skip
def test_what_is_not_declared_is_refused(store, sql):
    with pytest.raises(QueryError) as refused:
        store.read(sql, scope=LIMITED)

    said = str(refused.value)
    assert isinstance(refused.value, NotPermittedError) or "expected one select" in said
    assert "job_runs (" not in said, "no schema of what is refused"


@each(
    "select 1", "from range(3)", "from marts.runs", "from marts.findings",
    'select * from "marts"."runs" as runs where run_key = $1',
    "with runs as (from marts.runs), more as (from runs) select * from more union all from runs",
    "with recursive n as (select 1 as a union all select a + 1 from n where a < 3) from n",
    "select *, count(*) over (order by run_key) from marts.runs qualify row_number() over () < 3",
    "select list_transform([1], lambda x: x + 1), threshold('idle_min_ms'), unnest([1, 2])",
    "select * from (values (1), (2)) as numbers(a) where a in (select gpus from marts.runs)",
    "from reference.thresholds", "from marts.clusters")  # fmt: skip
def test_what_is_declared_is_read(store, sql):
    store.read(sql, ["x"] if "$1" in sql else None, scope=LIMITED)


def test_an_error_of_a_value_names_no_value(store):
    """A filter may be evaluated on rows that the view drops after it."""
    sql = "select ('secret-' || a)::integer from range(3) as numbers(a)"
    with pytest.raises(QueryError) as refused:
        store.read(sql, scope=LIMITED)

    assert "secret" not in str(refused.value)


def test_scopes_of_the_same_teams_are_equal():
    """They are the keys of kept answers, and lists where they come over HTTP."""
    assert Scope(teams=("b", "a", "b")) == Scope(teams=["a", "b"])
    assert hash(Scope(teams=["a"])) == hash(Scope(teams=("a",)))
    assert Scope(teams=()) != Scope()
