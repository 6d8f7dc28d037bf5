"""The page of rules is printed from their folders."""

from pathlib import Path

from goodput_app.finding_rules import page

DOCS = Path(__file__).parents[2] / "docs" / "findings.md"


def test_the_page_is_up_to_date():
    assert DOCS.read_text("utf-8") == page()
