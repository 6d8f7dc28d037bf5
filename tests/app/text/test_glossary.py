"""The glossary and the page of rules: one definition for each label, and docs of these."""

import ast
import tomllib
from pathlib import Path

import polars as pl
import pytest

from goodput_app.dashboard import table_columns, theme
from goodput_app.dashboard.components import tables
from goodput_app.finding_rules import page
from goodput_app.text import connect, glossary
from goodput_billing.statement.amounts.charges import DEFINITION_VERSION
from goodput_queries.catalog.find import catalogue

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "app" / "goodput_app" / "dashboard"
UNITS = ("_ms", "_s", "_ratio", "_cost", "_w", "_hz", "_c", "_h", "_kwh", "_kg")


def headers():
    """Yield column and header of each table of the dashboard, and of each that a module names."""
    for module, of_module in tomllib.loads(table_columns.FILE.read_text("utf-8")).items():
        for name in of_module:
            yield from table_columns.headers(f"{module}.{name}").items()
    for file in sorted(DASHBOARD.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
                continue
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(value, ast.Constant):
                    continue
                if isinstance(value.value, str):
                    yield str(key.value), value.value


@pytest.mark.usefixtures("all_packages")
def test_the_pages_are_printed_from_the_glossary_and_the_folders_of_rules_and_sources():
    docs = ROOT / "docs"
    made_by = "run `python -m goodput_app.text.glossary > docs/glossary.md`"

    assert (docs / "glossary.md").read_text("utf-8") == glossary.page(), made_by
    assert (docs / "findings.md").read_text("utf-8") == page()
    assert (docs / "connect.md").read_text("utf-8") == connect.page()


def test_every_column_with_a_unit_has_an_entry():
    measures = {header for column, header in headers() if column.endswith(UNITS)}
    measures |= {label for label, _ in theme.MONEY.values()}
    assert len(measures) > 40
    assert {header for header in measures if glossary.find(header) is None} == set()


def test_every_alias_is_a_label_in_use():
    used = {header for _, header in headers()}
    used |= {header[:1].upper() + header[1:] for header in used}
    aliases = {a for e in glossary.entries().values() for a in e.aliases.split("; ") if a}
    assert aliases - used == set()


def test_a_term_is_defined_once_and_its_view_exists():
    rows = set(glossary.entries().values())
    names = [name for e in rows for name in (e.term, *filter(None, e.aliases.split("; ")))]

    assert sorted(names) == sorted(set(names))
    assert len({e.definition for e in rows}) == len(rows)
    assert {e.view for e in rows if e.view} <= set(catalogue())


def test_the_definition_of_goodput_says_its_version_and_a_label_without_one_is_an_error():
    assert f"definition {DEFINITION_VERSION} " in glossary.hover("Goodput (% of capacity)")
    with pytest.raises(KeyError, match="'Dearest'"):
        glossary.hover("Dearest")


def test_the_header_of_a_column_explains_itself_by_the_glossary():
    frame = pl.DataFrame({"ettr_ratio": [0.5], "node": ["n1"]})

    _, config = tables.shaped(frame, {"ettr_ratio": "ETTR", "node": "Node"})

    assert config["ettr_percent"]["help"] == glossary.hover("ETTR")
    assert config["node"]["help"] is None
