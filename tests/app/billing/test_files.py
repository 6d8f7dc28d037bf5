"""The files of a statement: complete, harmless, the same every time."""

import csv
import io
import re
import sys
from decimal import Decimal

import polars as pl
import pypdfium2
import pytest
from tests.tables import each

from goodput_billing.render import files
from goodput_billing.statement.amounts.charges import Policy
from goodput_queries.errors import GoodputError

PROPORTIONAL = Policy("proportional", credits_infra_failures=True)


@pytest.fixture
def statement(make, lines):
    return make(lines, PROPORTIONAL, organisation="Example Lab")


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


def test_a_page_shows_hostile_names_as_text_and_needs_nothing_else(statement, tmp_path):
    (path,) = files.write(statement, tmp_path, ["html"])

    page = path.read_text()

    assert "<script" not in page
    assert "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;" in page
    assert "漢字" in page
    assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?(http|//|data:)", page)


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


def test_without_the_library_of_pdfs_that_is_reported_and_the_other_files_are_there(
    statement, tmp_path, monkeypatch
):
    monkeypatch.delitem(sys.modules, "goodput_billing.render.pdf", raising=False)
    monkeypatch.setitem(sys.modules, "reportlab.platypus", None)

    with pytest.raises(GoodputError, match="Install reportlab, or name the formats without it"):
        files.write(statement, tmp_path, ["csv", "pdf"])

    assert [path.suffix for path in tmp_path.iterdir()] == [".csv"]
    assert len(files.write(statement, tmp_path, ["html", "focus"])) == 2


def test_a_name_that_turns_the_direction_of_writing_is_spelt_out(make, lines, tmp_path):
    turned = [{**line, "job_name": "\u202egnp\x1b[2J"} for line in lines]
    made = make(turned, PROPORTIONAL, organisation="lab\u202e")

    written = files.write(made, tmp_path, ["html", "csv"])

    for path in written:
        assert "\u202e" not in path.read_text(encoding="utf-8")
    assert "\x1b" not in written[0].read_text(encoding="utf-8")
