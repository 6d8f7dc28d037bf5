"""Filters of a command: names as people give them become the values of the ledger."""

import contextlib
import json

import pytest
from tests.app.command_line import run
from tests.app.cost_page import SACCT, cost_file

from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError
from goodput_queries.names import resolved
from goodput_queries.scope import Scope

AT = "2026-11-19T"
ACCOUNTING = SACCT.splitlines()[0] + "".join(
    f"\n{cluster}|{job}|{job}|ann|nlp|gpu|COMPLETED|{AT}08:00:00|{AT}08:00:00|{AT}08:00:00|"
    f"{AT}09:00:00|1|{cluster}{job}|gres/gpu=1|{name}"
    for cluster, job, name in (("c", 1, "main"), ("c", 2, "eval"), ("d", 1, "main"))
)


@pytest.fixture(scope="module")
def database(empty_database, tmp_path_factory):
    """Give two clusters with a run `main` each, and one with a run `eval`."""
    return cost_file(empty_database, tmp_path_factory, {}, ACCOUNTING)


@pytest.fixture
def store(database):
    """Open the database."""
    with contextlib.closing(LocalStore(database)) as opened:
        yield opened


def asked(database, *arguments):
    return run(*arguments, "--db", str(database))


def test_a_unique_name_of_a_run_is_that_run(store):
    (key,) = store.read(
        "select distinct run_key from intermediate.int_job_run_owners where job_name = 'eval'"
    )["run_key"]

    assert resolved(store, Scope(run="eval")).run == key
    assert resolved(store, Scope(run=key)).run == key
    (job,) = store.read(
        "select job_id from intermediate.int_job_run_owners where run_key = $1", [key]
    )["job_id"]
    assert resolved(store, Scope(run=job)).run == key


def test_an_ambiguous_name_lists_its_candidates(store):
    keys = store.read(
        "select distinct run_key from intermediate.int_job_run_owners "
        "where job_name = 'main' order by 1"
    )["run_key"].to_list()

    with pytest.raises(QueryError) as caught:
        resolved(store, Scope(run="main"))

    assert str(caught.value) == f"run main is ambiguous: {', '.join(keys)}. Give one of these."


def test_a_cluster_makes_a_name_unique(store):
    run = resolved(store, Scope(run="main", cluster="d")).run

    owner = "select distinct cluster from intermediate.int_job_run_owners where run_key = $1"
    assert store.read(owner, [run]).item() == "d"


def test_a_name_of_another_cluster_is_not_known_in_this_one(store):
    with pytest.raises(QueryError, match=r"The ledger knows no node c1 in cluster d\."):
        resolved(store, Scope(node="c1", cluster="d"))


@pytest.mark.parametrize(
    ("scenario", "option"),
    [("halve-a-loss", "--run"), ("upgrade", "--node"), ("upgrade", "--team")],
)
def test_what_if_refuses_a_filter_that_it_has_no_use_for(database, scenario, option):
    result = asked(database, "what-if", scenario, option, "nlp")

    assert result.exit_code == 2
    assert f"{scenario} is computed for whole clusters: {option} does not apply" in result.stderr


def test_a_limit_of_0_is_no_limit(database, monkeypatch):
    monkeypatch.setattr("goodput_app.cli.output.TABLE_ROWS", 1)

    cut, whole = (
        asked(database, "runs", *limit).stdout.splitlines() for limit in ([], ["--limit", "0"])
    )

    assert (len(cut), len(whole)) == (2, 4)
    rows = json.loads(asked(database, "runs", "--limit", "0", "--format", "json").stdout)
    assert len(rows) == 3
