"""`goodput serving`: models, latencies and engines as rows, and what it says of an empty site."""

import json

import pytest
from tests.app.command_line import run
from tests.queries.conftest import Evidence
from tests.queries.serving.load import Serving, counters


@pytest.fixture(scope="module")
def database(new_store):
    """Give the database of an engine with a hundred requests."""
    evidence = Evidence(new_store())
    serving = Serving(evidence)
    engine = serving.engine("pod-0", "llama")
    engine.samples(counters({"generation_tokens": (2, 2)}, {"requests_running": (1, 1)}))
    engine.histogram("ttft_s", [(70.0 + n, 0.3) for n in range(100)], (0.0, 60.0, 3600.0))
    serving.load()
    evidence.node("n1", 1)
    return evidence.built()


def asked(path, *arguments):
    result = run("serving", *arguments, "--db", str(path), "--format", "json")
    assert result.exit_code == 0, result.output
    return result


def test_models_are_listed_with_their_tokens(database):
    row, of_role = json.loads(asked(database).stdout)

    assert (row["model"], row["role"], row["output_tokens"]) == ("llama", None, 14400)
    assert of_role["role"] == "both"


def test_without_rows_it_says_what_to_configure(database):
    result = asked(database, "objectives")

    assert json.loads(result.stdout) == []
    assert "[[serving.objectives]] in goodput.toml" in result.stderr
