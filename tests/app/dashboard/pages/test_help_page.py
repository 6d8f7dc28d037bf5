"""The Help page shows the documentation that comes with the program."""

import tomllib
from pathlib import Path

import pytest
from tests.app.opened_page import texts

from goodput_app import documents

ROOT = Path(__file__).parents[4]


def test_every_page_of_the_documentation_is_in_the_menu_and_in_the_wheel():
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

    assert set(documents.TITLES) == pages
    assert {f"docs/{name}.md" for name in pages} <= set(packed)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("see [sizing](operate.md#sizing).", "see [sizing](help?doc=operate#sizing)."),
        ("see [decision 53](decisions/0053-x.md).", "see decision 53."),
        ("see [above](#sizing), `[a](api.md)`", "see [above](#sizing), `[a](api.md)`"),
        ("it costs $2, `$HOME`", r"it costs \$2, `$HOME`"),
        ("```\n$ goodput [a](api.md)\n```", "```\n$ goodput [a](api.md)\n```"),
    ],
)
def test_links_lead_to_pages_that_come_with_the_program(tmp_path, monkeypatch, written, shown):
    (tmp_path / "api.md").write_text(f"# HTTP API\n{written}", "utf-8")
    monkeypatch.setattr(documents, "_PACKAGED", tmp_path)

    assert documents.text("api", "help") == shown


def test_it_needs_no_evidence(new_store, visit):
    app = visit(new_store(), "documentation", doc="operate")

    assert "Operate" in [header.value for header in app.header]
    assert "systemd" in texts(app)
