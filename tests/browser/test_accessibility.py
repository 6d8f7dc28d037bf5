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
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_violation(scheme, browser, base_url):
    context = browser.new_context(
        viewport={"width": 1400, "height": 1000}, color_scheme=scheme, reduced_motion="reduce"
    )
    page, found = context.new_page(), {}
    for name, path in PAGES.items():
        page.goto(f"{base_url}{path}")
        settled(page)
        charts_drawn(page)
        for violation in Axe().run(page, options=RULES).response["violations"]:
            found[name, violation["id"]] = [node["html"] for node in violation["nodes"]]
    context.close()

    assert found == {}
