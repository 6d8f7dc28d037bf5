"""No page has a violation of WCAG 2.1 A or AA that axe-core finds, in light and in dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browser.steps import charts_drawn, settled

pytestmark = pytest.mark.machine
PAGES = {
    "overview": "/", "fleet": "/fleet", "runs": "/runs", "run": "/run?run=lab/main",
    "nodes": "/nodes", "node": "/nodes?node=vm", "health": "/health",
    "findings": "/findings", "waste": "/waste", "network": "/network", "energy": "/energy",
    "cost": "/cost", "prices": "/cost?part=prices", "what-if": "/cost?part=what-if",
    "data": "/data", "explorer": "/explorer", "query": "/query", "wall": "/?view=wall",
    "report": "/report",
    "gpu": "/gpu?gpu=GPU-3f6b2d6a-2b08-5e42-952d-08e72183e84e",
}  # fmt: skip
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # what else is the same in both schemes
IS_DARK = """() => {
    const parts = getComputedStyle(document.querySelector(".stApp")).backgroundColor.match(/\\d+/g)
    return Math.max(...parts.slice(0, 3).map(Number)) < 128
}"""


def test_no_page_has_a_violation(browser, base_url):
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    page, found = context.new_page(), {}
    for name, path in PAGES.items():
        page.emulate_media(color_scheme="light")
        page.goto(f"{base_url}{path}")
        found |= violations(page, name, LEVELS)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(IS_DARK)
        found |= violations(page, f"{name}, dark", OF_COLOURS)
    context.close()

    assert found == {}


def violations(page, name, rules):
    """Return the elements of a page that break one of these rules, by name and rule."""
    settled(page)
    charts_drawn(page)
    broken = Axe().run(page, options={"runOnly": rules}).response["violations"]
    return {(name, rule["id"]): [node["html"] for node in rule["nodes"]] for rule in broken}
