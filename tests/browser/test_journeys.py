"""Journeys of an operator, in a real browser on the real sample data."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Error, Page, Position, expect

pytestmark = pytest.mark.machine
ROW: Position = {"x": 17, "y": 54}
SHOTS = os.environ.get("GOODPUT_SCREENSHOTS")  # a folder, for whoever wants to look
in_both_schemes = pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
# no server knows the scheme, so that what pages say is the same in both
pictured_in_both_schemes = (
    in_both_schemes if SHOTS else pytest.mark.parametrize("page", ["light"], indirect=True)
)


def shoot(page: Page, name: str) -> None:
    """Keep a picture of the whole page where one was asked for."""
    if SHOTS:
        page.wait_for_timeout(1500)  # charts draw after their data has come
        scheme = page.evaluate(
            "matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"
        )
        page.screenshot(path=Path(SHOTS) / f"{name}-{scheme}.png", full_page=True)


def settled(page: Page) -> None:
    """Wait until the page's script has run to its end and nothing on it is stale."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def pick_first_row(page: Page, name: str, row: Position = ROW, param: str | None = None) -> None:
    """Tick the first row of a table, which sets a parameter; it is a canvas, so by place."""
    table = page.locator(f".st-key-pick_{name}").get_by_test_id("stDataFrame")
    for _ in range(4):  # a table that is being redrawn goes away, and a click on it is lost
        with contextlib.suppress(Error):
            table.scroll_into_view_if_needed()
            table.click(position=row)
            page.wait_for_url(re.compile(rf"[?&]{param or name}="), timeout=8_000)
            return
    pytest.fail(f"no row of the table {name} could be picked")


@pictured_in_both_schemes
def test_from_the_overview_to_a_loss_to_its_run_and_back_by_a_shared_link(
    page: Page, browser, base_url
):
    page.goto(base_url)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_text("Top losses by cost", exact=True)).to_be_visible()
    settled(page)
    shoot(page, "overview")

    pick_first_row(page, "loss")
    expect(page.get_by_role("link", name="Open the run")).to_be_visible()
    settled(page)
    assert "loss=" in page.url
    shoot(page, "overview-loss")

    page.get_by_role("link", name="Open the run").click()
    expect(page.get_by_role("heading", name="hang", exact=True)).to_be_visible()
    settled(page)
    assert "run=" in page.url
    shoot(page, "run")

    other = browser.new_context(viewport={"width": 1440, "height": 900})
    shared = other.new_page()
    shared.goto(page.url, timeout=60_000)
    expect(shared.get_by_role("heading", name="hang", exact=True)).to_be_visible(timeout=60_000)
    other.close()

    page.go_back()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


@pictured_in_both_schemes
def test_a_run_shows_its_verdict_its_lanes_and_its_late_ranks(page: Page, base_url):
    page.goto(f"{base_url}/run?run=lab/main")

    expect(page.get_by_role("heading", name="main", exact=True)).to_be_visible()
    # the verdict; a flag of the same finding is beside the tiles
    expect(page.get_by_test_id("stAlert").get_by_text("Attempts of the job failed")).to_be_visible()
    expect(page.get_by_text("rank 1, vm GPU 1")).to_be_visible()
    expect(page.get_by_text("9.2 GPU-s lost by other ranks")).to_be_visible()
    settled(page)
    shoot(page, "run-main")


@pytest.mark.slow
@pictured_in_both_schemes
@pytest.mark.parametrize(
    ("path", "heading", "shown"),
    [
        ("runs", "Runs", "All runs"),
        ("waste", "Waste", "Causes"),
        ("cost", "Cost", "Who pays, and for what"),
        ("data", "Data", "Findings"),
    ],
)
def test_each_page_opens_by_its_link(page: Page, base_url, path, heading, shown):
    page.goto(f"{base_url}/{path}")

    expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    settled(page)
    expect(page.get_by_text(shown).first).to_be_visible()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(page.get_by_text("Page not found")).to_have_count(0)
    shoot(page, path)


def test_a_window_in_the_link_is_the_window_on_the_page(page: Page, base_url):
    page.goto(f"{base_url}/?from=2026-11-20T12:30:00Z&to=2026-11-20T12:31:00Z&run=lab/main")

    expect(page.get_by_text("4.0 GPU-min", exact=True)).to_be_visible()
    settled(page)


def test_a_filter_without_time_says_so_and_offers_to_clear_it(page: Page, base_url):
    page.goto(f"{base_url}/?team=nobody")

    expect(page.get_by_role("button", name="Clear filters").first).to_be_visible()
    settled(page)
    shoot(page, "empty-by-filter")


def test_from_the_cost_of_accounts_to_the_run_of_highest_cost_and_its_page(page: Page, base_url):
    page.goto(f"{base_url}/cost?by=run&line=lab%7Clab/main")

    expect(page.get_by_role("link", name="Open the run")).to_be_visible()
    settled(page)
    shoot(page, "cost-run")
    page.get_by_role("link", name="Open the run").click()

    expect(page.get_by_role("heading", name="main", exact=True)).to_be_visible()


def test_an_upgrade_is_answered_while_its_values_are_typed(page: Page, base_url):
    page.goto(f"{base_url}/cost?part=what-if&old_gpus=100&old_power_w=700&new_power_w=1000")
    settled(page)

    page.get_by_role("spinbutton", name="New GPUs (GPUs)").fill("50")
    page.keyboard.press("Enter")

    expect(page.get_by_text("-28.57 %", exact=True)).to_be_visible()
    assert "new_gpus=50" in page.url
    shoot(page, "what-if")


def test_the_web_page_of_a_statement_can_be_saved(page: Page, base_url):
    page.goto(f"{base_url}/cost")
    settled(page)

    with page.expect_download() as download:
        page.get_by_role("button", name="Web page").click()

    assert download.value.suggested_filename.startswith("statement-2026-11-20")
    assert "GPU chargeback statement" in Path(download.value.path()).read_text(encoding="utf-8")


def click_mark(page: Page, chart: str, kind: str, number: int) -> None:
    """Click a mark of a chart; Plotly needs the pointer to move over it first."""
    mark = page.locator(f".st-key-{chart} {kind} .point path").nth(number)
    shown = page.locator(".hoverlayer .hovertext")
    for _ in range(40):  # charts move as those above them are drawn, and go away when they are
        with contextlib.suppress(Error):
            mark.scroll_into_view_if_needed()
            if (box := mark.bounding_box()) is not None:
                x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
                page.mouse.move(x - 2, y - 2)
                page.mouse.move(x, y)
                page.wait_for_timeout(250)
                if shown.count():
                    return page.mouse.click(x, y)
    pytest.fail(f"nothing to hover over in {chart}")


def test_from_the_overview_to_a_gpu_of_a_rack_in_two_clicks_and_to_a_run(page: Page, base_url):
    page.goto(base_url)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("link", name="Fleet").click()
    expect(page.get_by_text("Rack unknown").first).to_be_visible()
    settled(page)
    shoot(page, "fleet")

    click_mark(page, "rack-grid", ".bars", 1)
    expect(page.get_by_role("heading", name="GPU 1, vm")).to_be_visible()
    settled(page)

    page.go_back()
    expect(page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()
    settled(page)
    click_mark(page, "fleet-over-time", ".bars", -1)
    expect(page.get_by_role("heading", name="slowlink", exact=True)).to_be_visible()
    assert "run=" in page.url


def test_from_the_overview_to_a_node_to_its_gpu_and_a_shared_link(page: Page, browser, base_url):
    page.goto(base_url)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("link", name="Nodes").click()
    expect(page.get_by_text("Select a row to open the node.")).to_be_visible()
    settled(page)

    pick_first_row(page, "of_node", param="node")
    expect(page.get_by_role("heading", name="vm", exact=True)).to_be_visible()
    expect(page.get_by_text("SM active (%)")).to_be_visible()
    settled(page)
    shoot(page, "node")

    page.get_by_role("link", name="GPU 1", exact=True).click()
    expect(page.get_by_role("heading", name="GPU 1, vm")).to_be_visible()
    expect(page.get_by_text("dashed: power limit 700")).to_be_visible()
    settled(page)
    shoot(page, "gpu")

    other = browser.new_context(viewport={"width": 1280, "height": 900})
    shared = other.new_page()
    shared.goto(page.url, timeout=60_000)
    expect(shared.get_by_role("heading", name="GPU 1, vm")).to_be_visible(timeout=60_000)
    other.close()


def test_what_ran_on_a_node_in_a_minute_opens_its_run(page: Page, base_url):
    page.goto(f"{base_url}/?from=2026-11-20T12:31:00Z&to=2026-11-20T12:32:00Z")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("link", name="Nodes").click()
    expect(page.get_by_text("Select a row to open the node.")).to_be_visible()
    settled(page)
    pick_first_row(page, "of_node", param="node")
    expect(page.get_by_role("heading", name="vm", exact=True)).to_be_visible()
    settled(page)

    pick_first_row(page, "held")
    page.get_by_role("link", name="Open run").click()

    expect(page).to_have_url(re.compile(r"/run\?.*run=lab%2Fmain.*from=2026-11-20T12%3A31"))
    settled(page)


@pictured_in_both_schemes
def test_the_slash_searches_and_a_result_opens_its_page(page: Page, base_url):
    page.goto(f"{base_url}/waste")
    expect(page.get_by_role("heading", name="Waste", exact=True)).to_be_visible()
    settled(page)

    page.keyboard.press("/")
    text = page.get_by_label("Name, job id or UUID")
    text.press("/")
    expect(text).to_have_value("/")  # where something is written it is a character
    text.fill("slow")
    page.keyboard.press("Enter")
    result = page.get_by_role("dialog").get_by_role("link").first
    expect(result).to_be_visible()
    shoot(page, "search")
    name = result.inner_text().split("\n")[-1].split(" ")[0]
    result.click()

    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "run=" in page.url


def test_a_lost_infiniband_link_leads_to_a_run_that_it_hit(page: Page, base_url):
    """One click from the Overview shows the link with the runs, the next one opens a run."""
    page.goto(base_url)
    settled(page)

    page.get_by_role("link", name="Network").click()
    expect(page.get_by_role("heading", name="Network", exact=True)).to_be_visible()
    expect(page.get_by_text("1 link lost")).to_be_visible()
    settled(page)
    shoot(page, "network")

    lost = page.get_by_test_id("stDataFrame").nth(1)  # below the slow nodes
    lost.scroll_into_view_if_needed()
    lost.click(position={"x": 17, "y": 54})
    run = page.get_by_role("link", name="Open run")
    expect(run).to_be_visible()
    assert "lost_link=" in page.url
    run.click()
    expect(page).to_have_url(re.compile(r"/run\?.*run="))
    settled(page)


def test_from_the_overview_to_the_node_that_lost_most_and_to_a_day_of_it(page: Page, base_url):
    page.goto(base_url)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("heading", name="Health", exact=True)).to_be_visible()
    settled(page)
    page.get_by_role("link", name="vm", exact=True).click()
    expect(page.get_by_role("heading", name="vm", exact=True)).to_be_visible()

    page.go_back()
    expect(page.get_by_role("heading", name="Health", exact=True)).to_be_visible()
    page.goto(f"{base_url}/health?kind=nvlink")
    chart = page.get_by_test_id("stPlotlyChart").first
    expect(chart.get_by_text("Nov 20")).to_be_visible()
    settled(page)
    shoot(page, "health")
    chart.click(position={"x": 500, "y": 60})  # its only cell, under what takes the pointer
    page.get_by_role("link", name="2026-11-20: open node vm").click()
    expect(page.get_by_role("heading", name="vm", exact=True)).to_be_visible()
    assert "from=2026-11-20" in page.url
