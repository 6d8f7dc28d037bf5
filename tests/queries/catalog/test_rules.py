"""A rule folder with a fault is refused with one sentence that names the fault.

Each effect and severity of a rule is shown by its cases.
"""

import re
from dataclasses import replace

import pytest
from tests.queries.findings import given
from tests.tables import each, refuses

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


@each({
    "no text": (('meaning = "It is warm."', ""), "the text of 'meaning' is missing."),
    "empty text": (('"It is warm."', '" "'), "the text of 'meaning' is missing."),
    "unknown key": (("owner", "who"), "'who' is none of the keys kind, severity, title"),
    "unknown severity": (('"note"', '"low"'), "severity is 'low', not page or ticket or note"),
    "unknown effect": (("[thr", 'severity_when = {sad = "note"}\n[thr'),
                       "effect 'sad' is none of allocated, awaited,"),
    "unknown severity of an effect": (
        ("[thr", 'severity_when = {long = "low"}\n[thr'),
        "severity_when has 'low', which is no severity."),
    "a page that stays one": (
        ("[thr", 'severity_when = {long = "page"}\n[thr'),
        "it can be a page, and severity_when does not say what once it is over."),
    "severity by nothing": (
        ("[thr", 'severity_when = "note"\n[thr'),
        "severity_when is no table of a severity by effect."),
    "no reason": (('why = "GPUs of the site are at 60 °C"', ""), "warm_gpu_c has no why."),
    "no number": (("value = 80", 'value = "80"'), "warm_gpu_c has no value that is a number."),
    "no TOML": (("value = 80", "value ="), "rule.toml: Invalid value (at line 15, column 8)."),
    "categories of no loss": (
        ("[thr", 'categories = ["down"]\n[thr'),
        "it has categories, and its family is not loss_findings."),
    "an act without conditions": (
        ("Cool it", "Drain the node"), "its action needs holds_when and forbidden_when."),
    "merged by chance": (("[thr", 'merged_into = [{rule = "node_down", by = "chance"}]\n[thr'),
                         "it is merged by 'chance', not by run, node or GPU."),
})  # fmt: skip
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


@pytest.mark.usefixtures("all_packages")
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
