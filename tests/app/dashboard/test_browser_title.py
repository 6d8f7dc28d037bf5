"""The browser's tab says which page it has, and of what."""

import pytest

from goodput_app.dashboard.browser_title import browser_title


@pytest.mark.parametrize(
    ("page", "params", "title"),
    [
        ("Overview", {}, "Overview · Goodput"),
        ("Run", {"run": "lab/main"}, "Run main · Goodput"),
        ("Nodes", {"node": "h100-17"}, "Nodes h100-17 · Goodput"),
        ("Nodes", {}, "Nodes · Goodput"),
        ("Fleet", {"node": "h100-17"}, "Fleet · Goodput"),  # a filter, not what the page is of
        ("Run", {"run": "lab/" + "x" * 80}, f"Run {'x' * 60} · Goodput"),
        ("Run", {"run": "lab/a\x1b\n\u202eb"}, "Run ab · Goodput"),
    ],
)
def test_the_title_of_a_page(page, params, title):
    assert browser_title(page, params) == title
