"""Every finding rule has a test that it fires and one that it stays quiet, by their marks."""

import ast
import csv
from importlib.resources import files
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
RULES = files("goodput_queries") / "sql" / "reference" / "finding_rules.csv"


def marked(kind):
    """Return the rules that tests or cases are marked with, by `pytest.mark.<kind>("rule")`."""
    mark = f"pytest.mark.{kind}"
    return {
        ast.literal_eval(rule)
        for file in TESTS.rglob("test_*.py")
        if f"{mark}(" in (text := file.read_text())
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == mark
        for rule in call.args
    }


@pytest.mark.parametrize("kind", ["fires", "quiet"])
def test_every_rule_has_such_a_test_and_no_other_is_named(kind):
    rules = {row["rule"] for row in csv.DictReader(RULES.read_text().splitlines())}

    assert marked(kind) == rules
