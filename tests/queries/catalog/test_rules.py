"""A rule folder with a fault is refused with one sentence that names the fault.

Each effect and severity of a rule is shown by its cases.
"""

import re
from dataclasses import replace

import pytest
from tests.queries.findings import given
from tests.tables import each, refuses, table

from goodput_queries.catalog import models, rules
from goodput_queries.errors import RuleError

RULE = """
title = "A GPU is warm"
kind = "health"
severity = "note"
meaning = "It is warm."
found_by = "Its temperature"
action = "Cool it"
fix = "cool_gpu"
owner = "operations"
effort = "hours"
page = "gpu"
target = "node"

[thresholds.warm_gpu_c]
value = 80
unit = "°C"
why = "GPUs of the site are at 60 °C"
"""


def folder(root, text=RULE, sql="select 1", cases=rules.CASES):
    """Write the folder of a rule."""
    made = root / "warm_gpu"
    (made / "cases").mkdir(parents=True)
    (made / "rule.toml").write_text(text)
    for kind in cases:
        (made / "cases" / f"{kind}.toml").touch()
    if sql is not None:
        (made / "rule.sql").write_text(sql)
    return made


def test_a_complete_folder_is_a_rule(tmp_path):
    rule = rules.read(folder(tmp_path))

    assert (rule.name, rule.view, rule.texts["returns"]) == ("warm_gpu", "rule_warm_gpu", "none")
    assert rule.thresholds[0].value == 80
    assert rule.least_share == "finding_min_share"


@each(table(__file__, "test_a_fault_of_its_text_is_named"))
def test_a_fault_of_its_text_is_named(tmp_path, change, sentence):
    with pytest.raises(RuleError, match=re.escape(sentence)) as error:
        rules.read(folder(tmp_path, RULE.replace(*change)))

    assert str(error.value).startswith("rule warm_gpu: ")


@each(({"sql": None}, "it has neither a rule.sql nor a family."),
      ({"cases": ["fires"]}, "it has no case in cases/quiet.toml."))  # fmt: skip
def test_a_part_that_is_missing_is_named(tmp_path, missing, sentence):
    with pytest.raises(RuleError, match=sentence):
        rules.read(folder(tmp_path, **missing))


test_the_columns_of_its_select_are_checked = refuses(
    RuleError,
    lambda columns: rules.check_columns("warm_gpu", columns),
    (["cluster", "start_at", "end_at", "confidence"], "lacks the column evidence"),
    ([*rules.COLUMNS, "score"], "has the column score, which findings do not have"),
)


def test_each_view_is_read_once_for_all_rules():
    union = models.of_layer("marts")["rule_findings"].sql
    of_one = [rule.view for rule in rules.rules() if rule.sql is not None]

    read = re.findall(r"from marts\.(\w+)", union)
    assert sorted(read) == sorted([*of_one, *rules.families()])
    assert {r.family for r in rules.rules() if r.sql is None} == {*rules.families(), rules.LOSSES}


def test_rates_are_of_the_present_rules_and_of_confidences():
    counts = [count for of_rule in rules.rates().values() for count in of_rule.values()]

    assert rules.rates().keys() <= {rule.name for rule in rules.rules()}
    words = {word for of_rule in rules.rates().values() for word in of_rule}
    assert words == {"", "Confirmed", "Likely", "Not confirmed"}
    assert all(0 <= right <= total for right, total in counts)


def test_a_category_is_the_loss_of_one_rule(tmp_path):
    text = RULE.replace("[thr", 'family = "loss_findings"\ncategories = ["down"]\n[thr')
    both = [rules.read(folder(tmp_path / name, text)) for name in ("a", "b")]

    with pytest.raises(RuleError, match="rule again: category down is one of rule warm_gpu"):
        rules.check_together([both[0], replace(both[1], name="again", thresholds=())])


@pytest.mark.parametrize("rule", rules.rules(), ids=lambda rule: rule.name)
def test_each_effect_of_a_rule_is_shown_by_a_case(rule):
    cases = given.cases(rule.name, "fires")
    shown = {row.get("effect") for case in cases for row in case["expected"]}

    assert shown - {None} == rule.severity_when.keys() - {rules.OVER}
    if rules.SEVERITIES[0] in (rule.texts["severity"], *rule.severity_when.values()):
        assert rule.severity_when[rules.OVER] in rules.SEVERITIES[1:], "a page that is over is none"


def test_each_effect_is_of_a_rule():
    of_rules = {effect for rule in rules.rules() for effect in rule.severity_when}
    assert of_rules == rules.EFFECTS.keys()
