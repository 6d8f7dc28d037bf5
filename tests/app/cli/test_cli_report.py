"""`goodput report`: files for a day with their messages, and the page Report as Markdown."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from tests.app.command_line import failing, run
from tests.app.cost_page import PRICED, cost_file
from tests.app.opened_page import HOSTILE
from tests.tables import each

from goodput_app.cli.weekly import WORDS
from goodput_app.weekly.page import page
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch


@pytest.fixture
def here(here, filled):
    """Work in a folder with jobs at 2 dollars on 19 and 20 November, whose ledger is built."""
    shutil.copyfile(cost_file(filled, PRICED), here / "goodput.duckdb")
    return here


def report(*arguments):
    return run("report", *arguments)


def test_it_writes_the_files_of_a_day_and_names_them(here):
    result = report("--date", "2026-11-19", "--out", "out")

    assert result.exit_code == 0, result.output
    names = [f"statement-2026-11-19.{form}" for form in ("csv", "parquet", "html", "pdf")]
    assert result.stdout.splitlines() == [f"out/{n}" for n in [*names, "focus-2026-11-19.csv"]]
    assert all((here / line).stat().st_size for line in result.stdout.splitlines())
    rows = pl.read_parquet(here / "out" / names[1])
    assert rows.filter(pl.col("team") == "nlp")["total_cost"].to_list() == [pytest.approx(48)]
    assert "Closed with evidence up to 2026-11-20 10:00 UTC" in result.stderr


@pytest.mark.machine
def test_other_processes_in_other_places_write_the_same_bytes_of_a_closed_day(here):
    report("--date", "2026-11-19", "--out", "first")

    for seed, zone, language in (("1", "Asia/Tokyo", "C"), ("77", "America/New_York", "C.UTF-8")):
        place = {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": language}
        subprocess.run(
            [sys.executable, "-c", "from goodput_app.cli.main import main; main()", "report",
             "--date", "2026-11-19", "--out", seed],
            cwd=here, env=os.environ | place, check=True, capture_output=True,
        )  # fmt: skip
        written = sorted((here / "first").iterdir())
        assert len(written) == 5
        assert [
            p.name for p in written if (here / seed / p.name).read_bytes() != p.read_bytes()
        ] == []


def test_only_the_formats_that_are_named_under_the_settings_of_the_site(here):
    (here / "goodput.toml").write_text('[statement]\nlateness_h = 48\nidle_policy = "uniform"\n')

    result = report("--date", "2026-11-19", "--formats", "csv, focus,csv")

    assert result.stdout.split() == ["statement-2026-11-19.csv", "focus-2026-11-19.csv"]
    assert not (here / "statement-2026-11-19.pdf").exists()
    assert "Open: figures may still change" in result.stderr


def test_a_month_is_every_line_of_its_days_in_one_file_and_comes_to_them_as_a_page(here):
    forms = ("csv", "parquet", "focus", "html", "pdf")
    result = report("month", "--month", "2026-11", *(f"--format={form}" for form in forms))

    names = [f"statement-2026-11.{form}" for form in ("csv", "parquet", "html", "pdf")]
    assert result.stdout.split() == [*names[:2], "focus-2026-11.csv", *names[2:]]
    for day in ("2026-11-19", "2026-11-20"):
        report("--date", day, "--formats", "csv,focus")
    for kind in ("statement", "focus"):
        header, *lines = (here / f"{kind}-2026-11.csv").read_text().splitlines()
        days = [(here / f"{kind}-2026-11-{day}.csv").read_text().splitlines() for day in (19, 20)]
        assert [header, *lines] == [*days[0], *days[1][1:]]
    table = pl.read_parquet(here / names[1])
    assert table["day"].dt.day().unique().sort().to_list() == [19, 20]
    assert f"2026-11: {table['total_cost'].sum():.2f} USD. 1 of 2 days are cl" in result.stderr
    assert "There is no evidence of 28 of 30 days." in result.stderr

    assert (here / names[3]).read_bytes().startswith(b"%PDF-")
    cells = page_cells(here / names[2])
    of_days = table.group_by("day").agg(pl.col("total_cost").sum()).sort("day")
    costs = [*of_days["total_cost"], of_days["total_cost"].sum()]
    assert [(row[0], row[3], row[4]) for row in cells["Day by day"]] == [
        (day, f"{cost:,.2f}", state)
        for day, cost, state in zip(
            ("2026-11-19", "2026-11-20", "Total"), costs, ("closed", "open", ""), strict=True
        )
    ]
    (account,) = [row for row in cells["Accounts"] if row[0] == "nlp"]
    gpu_h, total = float(account[1]), float(account[11])
    assert account[12] == f"{total / gpu_h:.2f}", "of an allocated hour"
    lines = cells["Lines"]
    assert sum(float(row[-1]) for row in lines[:-1]) == pytest.approx(float(lines[-1][-1]))
    (balance,) = cells["It balances"]
    assert (balance[5], balance[7]) == (balance[6], "0 ms")


def page_cells(path):
    """Return the rows of a page's tables as texts, by title."""
    sections = path.read_text().split("<h2>")[1:]
    return {
        section.partition("</h2>")[0]: [
            re.findall(r"<td[^>]*>([^<]*)</td>", row)
            for row in re.findall(r"<tr>(.*?)</tr>", section, re.DOTALL)
            if "<td" in row
        ]
        for section in sections
    }


def test_a_month_of_an_account_has_the_days_that_know_it(here):
    report("month", "--month", "2026-11", "--account", "nlp", "--format", "csv", "--format", "html")

    page = (here / "statement-2026-11-nlp.html").read_text()
    assert "account nlp, November 2026" in page
    assert not re.search("Unallocated|It balances|img src", page)
    table = pl.read_csv(here / "statement-2026-11-nlp.csv")
    assert table["team"].unique().to_list() == ["nlp"]
    assert table["total_cost"].sum() == pytest.approx(50)


@each(
    (["--date", "yesteryear"], 2, "'yesteryear' is not a date; expected like 2026-11-19"),
    (["--formats", "csv,xls"], 2, "'xls' is none of csv, parquet, html, pdf, focus."),
    (["--date", "2030-01-01"], 1, "there is no evidence of 2030-01-01 (UTC)"),
    (["--date", "2026-11-19", "--db", "no.duckdb"], 1, "there is no such database"),
    (["--date", "2026-11-19", "--account", "npl"], 1, "'npl' in the month of 2026-11-19"),
    (["month", "--month", "2030-01"], 1, "2030-01 has no evidence; name another month, like"),
    (["--account", "nlp", "--by-account"], 2, "--account makes one account's files"),
    (["--date", "2027-01-20", "weekly"], 2, "options of `weekly` stand behind it"),
)
def test_what_cannot_be_done_is_reported_in_a_sentence(here, arguments, code, message):
    assert message in failing("report", *arguments, code=code)
    assert not list(here.glob("statement-*"))


def test_time_without_a_price_is_reported_though_its_electricity_has_one(here):
    (here / "tariffs.csv").write_text("zone,from_hour,to_hour,price_per_kwh\nUTC,0,24,0.15\n")
    start = datetime(2026, 11, 19, 8, tzinfo=UTC).replace(tzinfo=None)
    readings = pl.DataFrame([
        {"source": "dcgm", "gpu_uuid": "c/a#0", "gpu_instance": "", "energy_j": 300.0 * second,
         "ts": start + timedelta(seconds=second), "is_flagged": False}
        for second in range(0, 6 * 3_600, 60)
    ])  # fmt: skip
    with contextlib.closing(LocalStore(here / "goodput.duckdb")) as store:
        ingest(store, "tariffs", [here / "tariffs.csv"], ReadOptions())
        store.load(Batch("gpu_samples", readings, "dcgm", "test", "readings"))
        with store.writing() as cursor:
            cursor.execute("delete from raw.rates")

    result = report("--date", "2026-11-19", "--formats", "csv")

    assert "64.0 GPU-hours have no price" in result.stderr


def test_one_account_gets_its_own_and_every_account_a_folder_beside_the_whole_statement(here):
    one = report("--date", "2026-11-19", "--account", "nlp", "--formats", "csv,focus")
    every = report("--date", "2026-11-20", "--by-account", "--formats", "csv", "--out", "out")

    assert one.stdout.split() == ["statement-2026-11-19-nlp.csv", "focus-2026-11-19-nlp.csv"]
    assert "2026-11-19: 48.00 USD." in one.stderr
    whole, of_account = "out/statement-2026-11-20.csv", "out/nlp/statement-2026-11-20-nlp.csv"
    assert every.stdout.split() == [whole, of_account]
    for path in ("statement-2026-11-19-nlp.csv", of_account):
        assert set(pl.read_csv(here / path)["team"]) == {"nlp"}


@pytest.mark.usefixtures("here")
def test_a_dispute_is_accepted_with_a_credit_and_listed():
    def adjust(*arguments):
        return run("adjust", *arguments)

    report("--date", "2026-11-19", "--formats", "csv")
    of = ["2026-11-19", "--account", "nlp", "--reason", "node failed", "--by", "ann"]
    disputed = adjust("dispute", *of, "--line", "1")
    refused = adjust("credit", *of, "--amount", "48.01")
    resolved = adjust("resolve", disputed.stdout.strip(), "--accepted", "--amount", "12.50",
                      "--reason", "it did")  # fmt: skip
    listed = adjust("list", "--format", "json")

    assert disputed.exit_code == resolved.exit_code == 0, resolved.output
    assert refused.exit_code == 1
    assert "was billed 48.00 USD on 2026-11-19: a credit of 48.01 is more" in refused.stderr
    rows = {row["kind"]: row for row in json.loads(listed.stdout)}
    assert rows["dispute"]["status"] == "accepted"
    assert (rows["credit"]["status"], rows["credit"]["amount"]) == ("not booked yet", 12.5)
    assert {row["made_by"] for row in rows.values()} >= {"ann"}


@pytest.fixture
def weekly(two_weeks_file, tmp_path):
    """Give what prints the report of the two weeks."""
    path = str(shutil.copyfile(two_weeks_file, tmp_path / "weeks.duckdb"))
    return lambda *options: run("report", "weekly", "--db", path, *options)


def test_names_with_markup_are_text_in_the_report_of_a_week_and_its_page():
    shown, text = WORDS.literal(f"{HOSTILE}\x1b[31m"), f"**{WORDS.literal('<b>&_a_|`c`')}**"

    assert "\\<script\\>" in shown
    assert "a/b\\|c" in shown
    assert "\x1b" not in shown
    assert "<strong>&lt;b&gt;&amp;_a_|`c`</strong>" in page("A week", text)
    assert "<title>&lt;i&gt;</title>" in page("<i>", text)
    assert "<p>&lt;img src=x&gt;</p>" in page("A week", "<img src=x>")
    table = page("A week", "| Part | Cost |\n|---|---:|\n| Wasted in this week | $960.00 |")
    assert "<td>Wasted in this week</td>" in table
    assert ">$960.00</td>" in table


def test_a_week_says_how_far_its_data_reach_also_as_a_page_and_one_without_any_is_refused(weekly):
    whole = weekly().output
    said = weekly("--date", "2027-02-03", "--team", "nlp", "--format", "html").output
    refused = weekly("--date", "2026-06-01")

    assert whole.startswith("# Week of 2027-01-25 to 2027-01-31\n"), "the last whole one"
    assert r"| Wasted in this week | \$960.00 |" in whole
    assert "<title>Week of 2027-02-01 to 2027-02-07, data to 2027-02-01 06:00" in said
    assert "<h2>Teams by waste</h2>" in said
    assert not re.search(r"<script|<img|<link|https?:", said), "it needs nothing else"
    assert refused.exit_code == 1
    assert "no data in the week of 2026-06-01: they go from 2027-01-15 08:00 UTC" in refused.output
