"""Each rule finds what its case says (`fires`), and nothing where another one says so (`quiet`)."""

import itertools

import polars as pl
import pytest
from tests.fleets import plans
from tests.queries import made_up_fleet
from tests.queries.conftest import START_MS, is_time
from tests.queries.findings import given
from tests.queries.findings.conftest import found_together

from goodput_queries.catalog import rules
from goodput_queries.errors import UnbalancedError
from goodput_queries.ledger_build.balance import note_refused
from goodput_queries.objectives.goodput import Objective, as_variable
from goodput_queries.scope import Scope

KEYS = {
    *("kind", "name", "given", "expected", "also", "alone"),
    *("objectives", "to", "about", "refused", "forbids"),
}


def cases():
    """Yield the cases of all rules."""
    for rule, kind in itertools.product(rules.rules(), rules.CASES):
        for case in given.cases(rule.name, kind):
            named = f"{rule.name} {kind}: {case['name']}"
            yield pytest.param(rule.name, {**case, "kind": kind}, id=named)


ALL = list(cases())
TOGETHER = [case for case in ALL if not case.values[1].get("alone")]
ALONE = [case for case in ALL if case.values[1].get("alone")]


def compared(rows, case, rule, name):
    """Return the findings of a rule and what is expected of them, with the same columns."""
    assert case.keys() <= KEYS
    assert ("expected" in case) == (case["kind"] == "fires")
    expected = [dict(row) for row in case.get("expected", [])]
    about = case.get("about", "")
    found = [row for row in rows if row["rule"] == rule and row["subject"].startswith(about)]
    if len(found) != len(expected):
        return [(row["subject"], row["evidence"]) for row in found], expected
    pairs = [_as(row, spec, name) for row, spec in zip(found, expected, strict=True)]
    return pairs, expected


def _as(row, spec, name):
    """Return the columns of a finding that a case speaks of, in its terms."""
    shown = {}
    for column, wanted in spec.items():
        of = {"gpu": "gpu_uuid", "run": "run_key"}.get(column, column)
        value = row[of]
        if isinstance(value, str):
            value = value.removeprefix(f"{name}/")
        if column in ("evidence", "what_to_do") and wanted in f"{value}$":
            value = wanted
        elif wanted == "":
            value = "" if value is None else value
        elif is_time(of):
            value = "open" if value is None else (value - given.Evidence.at(0)).total_seconds()
        elif isinstance(wanted, float):
            value = wanted if value == pytest.approx(wanted, rel=0.01) else value
        shown[column] = value
    return shown


@pytest.mark.parametrize("rule", [rule.name for rule in rules.rules() if rule.acts])
def test_a_rule_that_acts_has_a_case_that_forbids_it(rule):
    """What is released, drained, repaired, bought or killed cannot be taken back."""
    quiet = [case.get("forbids", False) for case in given.cases(rule, "quiet")]
    assert any(quiet)


@pytest.mark.parametrize(("rule", "case"), TOGETHER)
def test_a_rule_and_its_case(cluster, rule, case):
    given.load(cluster, case["given"])
    yield
    names = "rule, gpu_uuid, node, run_key, subject, severity, open_severity, effect, since_at, "
    names += "until_at, gpu_ms, back_ms, back_low_ms, confidence, evidence, what_to_do, state"
    columns = names.split(", ")
    rows = [dict(zip(columns, row, strict=True)) for row in found_together(cluster, names)]
    rows.sort(key=lambda row: (row["since_at"], row["subject"]))
    found, expected = compared(rows, case, rule, cluster.name)
    assert found == expected
    assert set(case.get("also", [])) <= {row["rule"] for row in rows}


@pytest.mark.parametrize(("rule", "case"), ALONE)
def test_a_rule_of_the_whole_database_and_its_case(evidence, rule, case):
    given.load(evidence, case["given"])
    evidence.build()
    if "refused" in case:
        error = UnbalancedError.of([tuple(case["refused"])], sequence=0)
        with evidence.store.writing() as cursor:
            note_refused(cursor, error)
    if "objectives" in case:
        wanted = [Objective(of.pop("target"), **of) for of in map(dict, case["objectives"])]
        evidence.store.variables["goodput_objectives"] = as_variable(wanted)
    scope = Scope(to_ms=START_MS + 1000 * case["to"]) if "to" in case else Scope()
    rows = evidence.read("from marts.findings order by rule, since_at", scope).to_dicts()
    found, expected = compared(rows, case, rule, evidence.name)
    assert found == expected


@pytest.fixture(scope="module", params=[101, pytest.param(102, marks=pytest.mark.machine)])
def healthy(request, module_store, tmp_path_factory):
    """Give a fleet whose jobs train to their end, without outages and holes in the readings."""
    store = module_store()
    made_up_fleet.load(store, tmp_path_factory.mktemp("healthy"), request.param, plans.quiet)
    return store


def test_a_healthy_fleet_works_for_a_third_of_the_time(healthy):
    held = healthy.read("select count(*) from intermediate.int_held_bins").item()
    assert held > 64 * 6 * 6 / 3


@pytest.mark.parametrize("mart", rules.families())
def test_nothing_is_found_in_a_healthy_fleet(healthy, mart):
    assert healthy.read(f"select rule, evidence from marts.{mart}").rows() == []


KINDS = {"varchar": pl.String, "timestamp": pl.Datetime("us"), "bigint": pl.Int64,
         "double": pl.Float64}  # fmt: skip
COLUMNS = {"rule": "varchar", **rules.REQUIRED, **rules.SUBJECT}


@pytest.mark.parametrize("mart", rules.families())
def test_each_has_rule_subject_time_cost_and_evidence(shared_evidence, mart):
    found = shared_evidence.read(f"select * from marts.{mart}").schema
    expected = {name: KINDS[kind] for name, kind in COLUMNS.items()}
    assert {name: found.get(name) for name in COLUMNS} == expected
