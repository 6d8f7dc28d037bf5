"""Which severity a finding of each rule has: by what it does, by its size, and once it is over."""

import pytest
from tests.queries.findings import given

from goodput_queries.catalog.rules import EFFECTS, OVER, SEVERITIES, rules


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_each_effect_of_a_rule_is_shown_by_a_case(rule):
    cases = given.cases(rule.name, "fires")
    shown = {row.get("effect") for case in cases for row in case["expected"]}

    assert shown - {None} == rule.severity_when.keys() - {OVER}


def test_each_effect_is_of_a_rule():
    assert {effect for rule in rules() for effect in rule.severity_when} == EFFECTS.keys()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_page_that_is_over_is_none(rule):
    if SEVERITIES[0] in (rule.texts["severity"], *rule.severity_when.values()):
        assert rule.severity_when[OVER] in SEVERITIES[1:]
