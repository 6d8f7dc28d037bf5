"""Steps of journeys: each acts on what it names, and waits for what it causes."""

import re

from playwright.sync_api import expect

# the script has run, nothing is stale, and no part awaits findings that would redraw the page
SETTLED = (
    '[data-testid="stApp"][data-test-script-state="notRunning"]'
    ':not(:has([class*="st-key-awaiting_"], [data-testid="stSkeleton"], [data-stale="true"]))'
)


def settled(page, heading=None):
    """Wait until the page of a heading is drawn and will not be redrawn by itself."""
    if heading is not None:
        found = page.get_by_role("heading", name=heading, exact=True)
        expect(found.first).to_be_visible()
    expect(page.locator(SETTLED)).to_be_attached()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def charts_drawn(page):
    """Wait until each chart of the page has its marks: they are drawn after their data came."""
    charts = page.get_by_test_id("stPlotlyChart")
    expect(charts.filter(has_not=page.locator(".main-svg"))).to_have_count(0)


def pick_first_row(page, table, param, key="Shift+Space"):
    """Open the first row of a table by a key that the page names; it sets a parameter."""
    cells = page.locator(f".st-key-pick_{table}").get_by_test_id("data-grid-canvas")
    cells.focus()  # which is on the first cell
    expect(cells.locator("td:focus")).to_be_attached()
    page.keyboard.press(key)
    expect(page).to_have_url(re.compile(rf"[?&]{param}="))
    settled(page)


def click_mark(page, chart, number):
    """Click a bar of a chart; Plotly takes a click only where the pointer was before."""
    bar = page.locator(f".st-key-{chart} .bars .point path").nth(number)
    bar.hover(force=True)  # a layer that takes the pointer lies over all marks
    expect(page.locator(f".st-key-{chart} .hoverlayer .hovertext").first).to_be_visible()
    bar.click(force=True)
