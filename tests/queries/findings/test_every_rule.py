"""Every finding rule has a test that it fires and one that it stays quiet, by their marks."""

import ast
import csv
from importlib.resources import files
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
RULES = files("goodput_queries") / "sql" / "reference" / "finding_rules.csv"


def marked(kind):
    """Return the rules that tests say they show, by `@pytest.mark.<kind>("rule")`."""
    found = set()
    for file in TESTS.rglob("test_*.py"):
        text = file.read_text()
        if f"@pytest.mark.{kind}(" not in text:
            continue
        for test in ast.parse(text).body:
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
                for mark in test.decorator_list:
                    if (
                        isinstance(mark, ast.Call)
                        and ast.unparse(mark.func) == f"pytest.mark.{kind}"
                    ):
                        found |= {ast.literal_eval(rule) for rule in mark.args}
    return found


@pytest.mark.parametrize("kind", ["fires", "quiet"])
def test_every_rule_has_such_a_test_and_no_other_is_named(kind):
    rules = {row["rule"] for row in csv.DictReader(RULES.read_text().splitlines())}

    assert marked(kind) == rules
