"""The page of rules is printed from the reference table, and each rule is complete."""

import csv
from pathlib import Path

from goodput_app.finding_rules import RULES, page

DOCS = Path(__file__).parents[2] / "docs" / "findings.md"
OWNERS = {"operations", "team"}
EFFORTS = {"minutes", "hours", "days"}


def rules():
    return list(csv.DictReader(RULES.read_text("utf-8").splitlines()))


def test_the_page_is_up_to_date():
    assert DOCS.read_text("utf-8") == page()


def test_each_rule_says_what_it_means_and_what_to_do():
    for rule in rules():
        assert all(rule.values()), rule
        assert rule["owner"] in OWNERS
        assert rule["effort"] in EFFORTS
        assert rule["severity"] in {"critical", "warning", "info"}


def test_a_rule_has_one_row():
    names = [rule["rule"] for rule in rules()]
    assert len(names) == len(set(names))
