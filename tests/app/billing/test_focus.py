"""The FOCUS file: the columns and rules of 1.2 and 1.3, and what the files add up to."""

import csv
import io
import json
import os
import re
import subprocess
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.tables import each

from goodput_billing.render.focus import focus
from goodput_billing.statement.amounts.charges import Policy

MANDATORY = (
    *("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "BillingAccountId"),
    *("BillingAccountName", "BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd"),
    *("ChargePeriodStart", "ChargePeriodEnd", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "PricingQuantity", "PricingUnit", "ServiceCategory", "ServiceName"),
    "InvoiceIssuerName",
)
OF_VERSION = {
    "1.2": ["ProviderName", "PublisherName"],
    "1.3": [
        "ServiceProviderName",
        "HostProviderName",
        "AllocatedMethodId",
        "AllocatedResourceId",
        "AllocatedMethodDetails",
        "AllocatedResourceName",
        "AllocatedTags",
    ],
}
OF_VERSION["1.4"] = [*OF_VERSION["1.3"], "InvoiceDetailId"]  # fmt: skip
CUSTOM = [
    *("x_HeldGpuSeconds", "x_ProductiveGpuSeconds", "x_IdleHeldGpuSeconds", "x_LostGpuSeconds"),
    *("x_UnknownGpuSeconds", "x_EnergyKwh", "x_IdleShareCost", "x_JobCount"),
    "x_DefinitionVersion",
]
NEVER_NULL = set(MANDATORY) - {"ChargeClass", "PricingQuantity", "PricingUnit"}
POLICY = Policy("proportional", credits_infra_failures=True)
# rules of focus-validator 1.0.0 that ask for names which no release has: ChargeType, Provider ...
MISNAMED = {
    "InvoiceIssuer_Required", "Provider_Required", "Publisher_Required", "ResourceID_Required",
    "SkuPriceId_Nullable",
}  # fmt: skip


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode())))


@pytest.fixture(params=["1.2", "1.3", "1.4"])
def version(request):
    return str(request.param)


@pytest.fixture
def statement(make, lines):
    return make(lines, POLICY, organisation="Example Lab", site="hall 1")


def test_columns_are_those_of_the_version_in_order_then_our_own(statement, version):
    header = focus(statement, version).decode().split("\n", 1)[0].split(",")

    ours = [name for name in header if name.startswith("x_")]
    theirs = header[: len(header) - len(ours)]
    assert ours == CUSTOM
    assert theirs == sorted(theirs)
    assert {*MANDATORY, *OF_VERSION[version]} <= set(theirs)
    others = {name for names in OF_VERSION.values() for name in names}
    assert others & set(theirs) == set(OF_VERSION[version])


def test_values_follow_the_rules_of_their_columns(statement, version):
    for row in rows_of(focus(statement, version)):
        assert all(row[name] for name in NEVER_NULL), row
        assert "null" not in row.values()
        assert row["SubAccountName"] != "new", "time without a price is left out rather than free"
        for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"):
            assert re.fullmatch(r"-?\d+(\.\d+)?", row[name])
            assert Decimal(row[name]) >= 0 or row["ChargeCategory"] in ("Credit", "Adjustment")
        for name in (n for n in row if n.endswith(("PeriodStart", "PeriodEnd"))):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name])
        assert row["ChargeCategory"] in ("Usage", "Credit", "Adjustment")
        assert row["BillingPeriodStart"] == "2026-11-01T00:00:00Z"
        assert row["BillingPeriodEnd"] == "2026-12-01T00:00:00Z"
        if row["ChargeCategory"] == "Usage":
            assert row["PricingUnit"] == row["ConsumedUnit"] == "GPU-Hours"
            quantity = Decimal(row["PricingQuantity"])
            assert quantity * Decimal(row["ContractedUnitPrice"]) == Decimal(row["ContractedCost"])
            assert quantity * Decimal(row["ListUnitPrice"]) == Decimal(row["ListCost"])
            assert row["SkuPriceId"].startswith(row["SkuId"] or "missing")
        else:
            assert row["ContractedCost"] == row["BilledCost"]
            assert not row["ConsumedQuantity"]
            assert row["ChargeCategory"] != "Credit" or row["x_JobCount"] == "0"
        for name in ("Tags", "SkuPriceDetails"):
            assert not row[name] or isinstance(json.loads(row[name]), dict)


@pytest.mark.parametrize("showback", [False, True])
def test_effective_cost_is_the_statement_and_a_showback_bills_nothing(
    make, lines, version, showback
):
    statement = make(lines, POLICY, showback=showback)
    rows = rows_of(focus(statement, version))

    effective = [Decimal(row["EffectiveCost"]) for row in rows]
    assert sum(effective) == statement.total_cost
    billed = [Decimal(row["BilledCost"]) for row in rows]
    assert billed == ([0] * len(rows) if showback else effective)


@pytest.mark.parametrize("version", ["1.3", "1.4"], indirect=True)
def test_shares_of_idle_time_say_how_they_were_allocated(statement, version):
    rows = rows_of(focus(statement, version))

    allocated = [row for row in rows if row["AllocatedMethodId"]]
    elements = [json.loads(row["AllocatedMethodDetails"])["Elements"][0] for row in allocated]

    assert {row["AllocatedMethodId"] for row in allocated} == {"idle-proportional-v1"}
    assert sum(Decimal(str(e["AllocatedRatio"])) for e in elements) == pytest.approx(1)
    assert sum(Decimal(row["EffectiveCost"]) for row in allocated) == Decimal("200.00")
    assert {e["UsageUnit"] for e in elements} == {"GPU-Hours"}
    assert {row["ResourceId"] for row in allocated} == {"c/idle"}


@each(
    ("UTC", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
    ("Asia/Tokyo", "2026-10-31T15:00:00Z", "2026-11-30T15:00:00Z"),
    ("America/New_York", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"),
)
def test_the_billing_period_is_the_month_of_the_days_zone(make, lines, zone, begin, end):
    for row in rows_of(focus(make(lines, POLICY, zone=zone, organisation="研究所"))):
        assert row["BillingAccountId"] == "研究所"
        assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (begin, end)
        assert begin <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= end


def test_gpus_without_counters_have_the_energy_of_their_nodes_meters(make, lines):
    counted, metered = lines[0], lines[2] | {"wall_mj": 2 * 3_600_000_000}

    made = make([counted, metered], POLICY)

    kwh = {row["SubAccountName"]: row["x_EnergyKwh"] for row in rows_of(focus(made))}
    assert float(kwh["vision"]) == 2
    assert dict(made.accounts.select("account", "energy_kwh").rows())["vision"] == 2


@pytest.mark.skipif(
    not os.environ.get("GOODPUT_FOCUS_VALIDATOR"),
    reason="GOODPUT_FOCUS_VALIDATOR names no focus-validator (its pins need an environment apart)",
)
def test_focus_validator_finds_nothing_but_names_that_no_release_has(statement, tmp_path):
    validator = Path(os.environ["GOODPUT_FOCUS_VALIDATOR"]).absolute()
    file, report = tmp_path / "focus.csv", tmp_path / "report.xml"
    file.write_bytes(focus(statement))
    (packages,) = validator.parents[1].glob("lib/python*/site-packages")

    subprocess.run(
        [validator, "--data-file", file, "--validate-version", "1.0", "--output-type", "unittest",
         "--output-destination", report],
        cwd=packages,  # it looks for its list of currencies from where it is started
        check=False,
        capture_output=True,
    )  # fmt: skip

    cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314 -- our own tool's file
    failed = {c.get("name", "").split(" ")[0] for c in cases if c.find("failure") is not None}
    assert len(cases) > 50
    assert failed <= MISNAMED


def test_texts_that_a_spreadsheet_would_run_are_text_and_amounts_stay_numbers(make, lines):
    rows = rows_of(focus(make(lines, POLICY), "1.2"))

    cells = [cell for row in rows for cell in row.values()]
    unsafe = [c for c in cells if c[:1] in {"=", "+", "@", "\t", "\r"} or c[:1] == "-"]
    assert any(cell.startswith("'=cmd|") and "漢字" in cell for cell in cells)
    assert all(re.fullmatch(r"-\d+(\.\d+)?", cell) for cell in unsafe)
