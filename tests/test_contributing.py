"""The example of CONTRIBUTING.md runs as it stands there: its blocks, in copies of the packages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
GOLDEN = shutil.ignore_patterns("golden")
PACKAGES = {
    "app": ("goodput_app", "goodput_billing", "goodput_messages", "goodput_scenarios"),
    "ingest": ("goodput_formats_extra", "goodput_ingest", "goodput_synthetic"),
    "queries": ("goodput_lake", "goodput_queries", "goodput_serving"),
}


def block(after, fence=""):
    """Return the first block behind a text."""
    _, _, rest = TEXT.partition(after)
    found = re.search(rf"^```{fence}\n(.*?)^```$", rest, flags=re.MULTILINE | re.DOTALL)
    assert found, after
    return found[1]


def inserted(path, before, text):
    """Write a text into a file, before one that is there once."""
    content = path.read_text(encoding="utf-8")
    assert content.count(before) == 1, before
    path.write_text(content.replace(before, text + before), encoding="utf-8")


@pytest.fixture(scope="module")
def shown(empty_database, tmp_path_factory):
    """Write the blocks to the files that the text names; return what they give."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copyfile(empty_database, folder / "goodput.duckdb")  # opening it adds what it lacks
    for where, packages in PACKAGES.items():
        for package in packages:  # with what is compiled, which is as new as what it is of
            shutil.copytree(ROOT / where / package, folder / where / package, ignore=GOLDEN)
    for name, fence in re.findall(
        r"`((?:ingest|queries|app)/[\w/]+\.(?:py|sql|toml))`[^\n]*(?:\n[^`\n][^\n]*)*:\n\n```(\w+)\n",
        TEXT,
    ):
        if name.endswith("data/marts.py"):
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write("\n\n" + block(f"`{name}`", fence))
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block(f"`{name}`", fence), encoding="utf-8")
    registry = folder / "ingest/goodput_ingest/sources/registry.py"
    module = "from goodput_ingest.sources.site.rack_temperature import RackTemperature\n"
    inserted(registry, "from goodput_ingest.sources.site.rates import", module)
    inserted(registry, "    Rates.name: Rates", block("before sources that recognise", "python"))
    page = re.search(r"`(RACKS = _page\([^`]*\))`", TEXT)
    assert page
    main = folder / "app/goodput_app/dashboard/main.py"
    inserted(main, "GROUPS = {\n", f"{page[1]}\n")
    inserted(main, "OVERVIEW, FLEET, RUNS,", "RACKS, ")
    glossary = folder / "app/goodput_app/text/glossary.csv"
    with glossary.open("a", encoding="utf-8") as file:
        file.write(block("> docs/glossary.md"))
    (folder / "input.csv").write_text(block("shows the reject"), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, ROOT / "tests/contributed_example.py", folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(folder / part) for part in PACKAGES)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])


def test_its_source_reads_rows_and_rejects_one(shown):
    ((line, reason),) = shown["rejects"]

    assert line == 4
    assert reason.startswith("rack-temperature: line 4: could not convert string to float: 'warm'")


def test_its_mart_has_a_row_a_node(shown):
    assert shown["rows"] == [["n1", 24.5, 1], ["n2", 27.25, 1]]


def test_its_rule_finds_the_node_of_the_inventory(shown):
    assert shown["findings"] == [["n1", "the air that it takes in has 24.5 °C"]]


def test_its_page_shows_the_hottest_node_first(shown):
    assert shown["errors"] == []
    assert set(shown["titles"]) == {"Goodput", "Racks"}
    assert shown["table"].splitlines()[:2] == ["node,inlet_temperature_c,readings", "n2,27.25,1"]
