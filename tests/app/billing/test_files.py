"""The files of a statement: complete, harmless, the same every time; FOCUS by its rules."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pypdfium2
import pytest
from tests.tables import each

from goodput_app.cli import month
from goodput_billing.render import files
from goodput_billing.render.focus import focus
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.several_days import together
from goodput_queries.errors import GoodputError

PROPORTIONAL = Policy("proportional", credits_infra_failures=True)


@pytest.fixture
def statement(make, lines):
    return make(lines, PROPORTIONAL, organisation="Example Lab", site="hall 1")


@pytest.mark.parametrize("form", files.FORMATS)
def test_the_same_statement_gives_the_same_bytes(make, lines, tmp_path, form):
    (first,) = files.write(make(lines, PROPORTIONAL), tmp_path / "a", [form])
    (second,) = files.write(make(lines[::-1], PROPORTIONAL), tmp_path / "b", [form])
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_csv_and_parquet_have_the_same_rows_that_add_up(statement, tmp_path):
    comma, parquet = files.write(statement, tmp_path, ["csv", "parquet"])

    rows = list(csv.DictReader(io.StringIO(comma.read_text())))
    kept = pl.read_parquet(parquet)

    assert [row["total_cost"] for row in rows] == [
        "" if cost is None else f"{cost:.2f}" for cost in kept["total_cost"]
    ]
    assert sum(kept["total_cost"].drop_nulls()) == statement.total_cost
    assert kept["gpu_ms"].sum() == sum(row["gpu_ms"] for row in statement.rows.to_dicts())


def test_a_formula_is_made_text_in_csv_alone(make, lines, tmp_path):
    """Of every beginning: test_cli_output."""
    rows = [{**lines[1], "team": "=1+1", "job_name": "\n=x"}]

    comma, parquet = files.write(make(rows, PROPORTIONAL), tmp_path, ["csv", "parquet"])

    (row,) = csv.DictReader(io.StringIO(comma.read_bytes().decode(), newline=""))
    assert (row["team"], row["job_name"]) == ("'=1+1", "'\n=x")
    assert pl.read_parquet(parquet)["team"].to_list() == ["=1+1"]


def test_amounts_bear_their_currency_in_every_file(make, lines, tmp_path):
    statement = make(lines, Policy("proportional", currency="EUR"))

    comma, parquet, page, pdf, focus = files.write(statement, tmp_path, files.FORMATS)

    header = comma.read_text().splitlines()[0].split(",")
    assert {"total_cost", "price_per_gpu_h", "list_price_per_gpu_h", "direct_cost"} <= set(header)
    assert pl.read_parquet(parquet).columns == header
    assert set(pl.read_parquet(parquet)["currency"]) == {"EUR"}
    assert set(pl.read_csv(focus)["BillingCurrency"]) == {"EUR"}
    text = page.read_text()
    assert f"€{statement.total_cost:,.2f}" in text
    assert "Amounts in EUR." in text
    assert "$" not in text.split("</style>")[1]
    with pypdfium2.PdfDocument(pdf) as document:
        shown = "".join(part.get_textpage().get_text_bounded() for part in document)
    assert f"€{statement.total_cost:,.2f}" in shown
    assert "$" not in shown


def test_an_account_called_like_what_nobody_held_stays_an_account(make, lines):
    rows = [{**lines[1], "team": "Unallocated"}, lines[4]]

    found = make(rows, Policy()).accounts.select("account", "is_account").rows()

    assert found == [("Unallocated (account)", True), ("Unallocated", False)]


def test_days_in_two_currencies_are_no_page_and_one_knows_an_account_or_it_is_refused(make, lines):
    days = [make(lines, Policy(currency=code)) for code in ("USD", "EUR")]

    with pytest.raises(GoodputError, match=r"several currencies \(EUR, USD\)"):
        together(None, days)
    with pytest.raises(GoodputError, match="no account 'npl' in the month"):
        month._of_account(None, days, "npl")


def test_a_page_shows_hostile_names_as_text_and_needs_nothing_else(make, lines, tmp_path):
    turned = [{**line, "job_name": "\u202egnp\x1b[2J"} for line in lines]
    made = make(turned, PROPORTIONAL, organisation="lab\u202e")

    page, comma = (path.read_text("utf-8") for path in files.write(made, tmp_path, ["html", "csv"]))

    assert "<script" not in page
    assert "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;" in page
    assert "漢字" in page
    assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?(http|//|data:)", page)
    assert "\u202e" not in page + comma
    assert "\x1b" not in page


def numbers(text):
    found = re.sub("<[^>]*>", "", text).replace(",", "")
    return [] if found in ("\N{EN DASH}", "unknown", "no price", "") else [Decimal(found)]


@each(("Accounts", range(1, 12)), ("Lines", range(7, 12)))
def test_totals_on_the_page_are_the_sums_of_its_rows(make, lines, tmp_path, title, columns):
    odd = [{**lines[1], "team": f"t{i}", "gpu_ms": 1_012_345 + 13 * i} for i in range(600)]
    (path,) = files.write(make([*lines, *odd], PROPORTIONAL), tmp_path, ["html"])
    table = path.read_text().split(f"<h2>{title}</h2>")[1].split("</table>")[0]

    def cells(row):
        return re.findall(r"<td[^>]*>(.*?)</td>", row)

    body = [cells(row) for row in table.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:]]
    (foot,) = [cells(row) for row in table.split("<tfoot>")[1].split("<tr>")[1:]]

    assert len(body) > 500
    for column in columns:
        known = [number for row in body for number in numbers(row[column])]
        assert [sum(known)] == numbers(foot[column]), column


def test_a_pdf_has_its_figures_as_text_and_a_number_on_every_page(statement, tmp_path):
    (path,) = files.write(statement, tmp_path, ["pdf"])

    with pypdfium2.PdfDocument(path) as document:
        pages = [page.get_textpage().get_text_bounded() for page in document]

    assert "GPU chargeback statement, Thursday 19 November 2026" in pages[0]
    assert f"${statement.total_cost:,.2f}" in pages[0]
    assert all(f"Page {i + 1}" in text for i, text in enumerate(pages))
    assert "Open: figures may still change" in pages[0]


def test_a_statement_of_many_lines_and_accounts_fits_its_page_and_pdf(make, lines, tmp_path):
    many = [{**lines[0], "run_key": f"c/{i}", "run_id": str(i)} for i in range(1_500)]
    many += [{**lines[1], "team": f"team-{i}"} for i in range(60)]

    page, pdf = files.write(make(many, PROPORTIONAL), tmp_path, ["html", "pdf"])

    assert page.stat().st_size < 2_000_000
    assert "more lines" in page.read_text()
    assert "42 other accounts" in page.read_text()
    with pypdfium2.PdfDocument(pdf) as document:
        assert 1 < len(document) < 10


def test_without_the_library_of_pdfs_other_files_are_there(statement, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "goodput_billing.render.pdf", raising=False)
    monkeypatch.setitem(sys.modules, "reportlab.platypus", None)

    with pytest.raises(GoodputError, match="Install reportlab, or name the formats without it"):
        files.write(statement, tmp_path, ["csv", "pdf"])

    assert [path.suffix for path in tmp_path.iterdir()] == [".csv"]
    assert len(files.write(statement, tmp_path, ["html", "focus"])) == 2


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
        *("ServiceProviderName", "HostProviderName", "AllocatedMethodId", "AllocatedResourceId"),
        *("AllocatedMethodDetails", "AllocatedResourceName", "AllocatedTags"),
    ],
}
OF_VERSION["1.4"] = [*OF_VERSION["1.3"], "InvoiceDetailId"]  # fmt: skip
CUSTOM = [
    *("x_HeldGpuSeconds", "x_ProductiveGpuSeconds", "x_IdleHeldGpuSeconds", "x_LostGpuSeconds"),
    *("x_UnknownGpuSeconds", "x_EnergyKwh", "x_IdleShareCost", "x_JobCount"),
    "x_DefinitionVersion",
]
NEVER_NULL = set(MANDATORY) - {"ChargeClass", "PricingQuantity", "PricingUnit"}
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
def test_effective_cost_is_the_statement_a_showback_is_free(make, lines, version, showback):
    statement = make(lines, PROPORTIONAL, showback=showback)
    rows = rows_of(focus(statement, version))

    effective = [Decimal(row["EffectiveCost"]) for row in rows]
    assert sum(effective) == statement.total_cost
    billed = [Decimal(row["BilledCost"]) for row in rows]
    assert billed == ([0] * len(rows) if showback else effective)


@pytest.mark.parametrize("version", ["1.3", "1.4"], indirect=True)
def test_shares_of_idle_time_say_how_they_were_allocated(statement, version):
    allocated = [row for row in rows_of(focus(statement, version)) if row["AllocatedMethodId"]]
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
    for row in rows_of(focus(make(lines, PROPORTIONAL, zone=zone, organisation="研究所"))):
        assert row["BillingAccountId"] == "研究所"
        assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (begin, end)
        assert begin <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= end


def test_gpus_without_counters_have_the_energy_of_their_nodes_meters(make, lines):
    counted, metered = lines[0], lines[2] | {"wall_mj": 2 * 3_600_000_000}

    made = make([counted, metered], PROPORTIONAL)

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
    rows = rows_of(focus(make(lines, PROPORTIONAL), "1.2"))

    cells = [cell for row in rows for cell in row.values()]
    unsafe = [c for c in cells if c[:1] in {"=", "+", "@", "\t", "\r"} or c[:1] == "-"]
    assert any(cell.startswith("'=cmd|") and "漢字" in cell for cell in cells)
    assert all(re.fullmatch(r"-\d+(\.\d+)?", cell) for cell in unsafe)
