"""Documentation: its links resolve, and the commands that it shows exist."""

import csv
import re
from pathlib import Path

import pytest
from tests.tables import each

from goodput_app.cli.main import COMMANDS
from goodput_app.text import glossary
from goodput_ingest.sources.job_events.fields import EVENTS, NAMED
from goodput_ingest.sources.registry import sources
from goodput_ingest.sources.slurm.fields import COMMAND as COMMAND_OF_SACCT

ROOT = Path(__file__).parents[1]
PAGES = [
    str(page.relative_to(ROOT))
    for place in sorted(ROOT.iterdir())
    if not place.name.startswith(".")  # environments have thousands of files
    for page in (sorted(place.rglob("*.md")) if place.is_dir() else [place])
    if page.suffix == ".md"
]
MODULES = sorted((ROOT / "tests").rglob("test_*.py"))
TEST_FILES = {file.name for file in MODULES}
TESTS = {
    test
    for file in MODULES
    for test in re.findall(r"(?m)^\s*(?:def )?(test_\w+)(?:\(| = )", file.read_text("utf-8"))
}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|`|\$ |exec |bin/)goodput ([a-z][a-z-]*)", re.MULTILINE)


def anchors(page):
    """Return the anchors of the headings of a page, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def test_the_index_of_decisions_has_each_once():
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(
        r"^\| \[\d+\]\((.*?)\)", (folder / "README.md").read_text("utf-8"), re.MULTILINE
    )

    assert sorted(listed) == sorted(page.name for page in folder.glob("[0-9]*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_relative_links_resolve(name):
    page = ROOT / name
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_commands_that_a_page_shows_exist(name):
    assert set(COMMAND.findall((ROOT / name).read_text(encoding="utf-8"))) <= set(COMMANDS)


def test_every_page_of_the_documentation_is_linked_from_the_readme():
    linked = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    pages = {page for page in PAGES if re.match(r"docs/(?!decisions/)", page)}

    assert pages - set(linked) == set()


def test_the_page_of_job_events_has_all_events_fields_and_phases():
    page = (ROOT / "docs" / "job-events.md").read_text(encoding="utf-8")
    sql = next((ROOT / "queries").rglob("declared_phases.sql")).read_text(encoding="utf-8")
    phases = dict(re.findall(r"when '(\w+)' then '(\w+)'", sql))
    with glossary.CATEGORIES.open(encoding="utf-8") as file:
        labels = {row["category"]: row["label"] for row in csv.DictReader(file)}

    assert {name for name in (*EVENTS, *NAMED, *phases) if f"`{name}`" not in page} == set()
    assert len(phases) >= 6
    for phase, category in phases.items():
        assert re.search(rf"^\|.*`{phase}`.*\| {labels[category]} \|$", page, re.MULTILINE), phase


@pytest.mark.usefixtures("all_packages")
def test_the_table_of_sources_has_every_source():
    page = (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")
    table = page.partition("## Sources\n")[2].partition("\n## ")[0]

    named = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", " ".join(named))) == set(sources())


@each("inventory", "rates", "tariffs", "budgets", "carbon", "node-states", "power-feeds")
def test_the_headers_of_site_files_are_those_that_are_read(source):
    page = (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")
    found = re.search(rf"^{source}:\s+(\S+)(?:\n\s+\((.*)\))?$", page, re.MULTILINE)

    also = re.findall(r"\w+_\w+|factor", found[2] or "")
    assert {*found[1].split(","), *also} == set(sources()[source].columns)


def test_the_page_has_the_sacct_line_of_messages():
    assert f"\n{COMMAND_OF_SACCT}\n" in (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("all_packages")
@pytest.mark.parametrize("name", [page for page in PAGES if not page.startswith("CHANGELOG")])
def test_files_and_tests_that_a_page_names_exist(name):
    page = (ROOT / name).read_text(encoding="utf-8")
    shown = re.findall(r"`(?:\w+\.)?((?:tests|app|ingest|queries|docs|deploy)/[\w./-]+\w)", page)
    made = {path for path in shown if "rack_temperature" in path or "inlet" in path}
    gone = {path for path in shown if not (ROOT / path).exists()} - made
    gone |= {f"{test}.py" for test in re.findall(r"`(?:[\w/]+/)?(test_\w+)\.py", page)} - TEST_FILES
    gone |= set(re.findall(r"(?:`|::)(test_\w+)`", page)) - TESTS - {t[:-3] for t in TEST_FILES}

    assert gone == set()
