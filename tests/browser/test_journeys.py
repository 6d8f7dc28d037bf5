"""Journeys in a real browser on the real sample data.

Whoever asks reaches the answer in as many clicks as the targets of the screens allow.
"""

import re
from pathlib import Path

import pypdfium2
import pytest
from playwright.sync_api import expect
from tests.browser.steps import charts_drawn, click_mark, pick_first_row, settled
from tests.recorded_session import SAMPLE

pytestmark = pytest.mark.machine
TABS_MOST = 120
SCREEN = {"width": 1440, "height": 900}
SINCE = re.compile(r"Since (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
FOCUSED = "document.activeElement.matches('a, button') ? document.activeElement.innerText : ''"
MINUTE = "from=2026-11-20T12:31:00Z&to=2026-11-20T12:32:00Z"


def test_from_a_loss_to_its_run_and_a_shared_link(page, browser, base_url):
    page.goto(base_url)
    settled(page, "Overview")
    page.get_by_text("Top losses by cost").click()
    pick_first_row(page, "loss", "loss")
    page.get_by_role("link", name="Open the run").click()
    settled(page, "hang")
    expect(page).to_have_url(re.compile("run="))

    other = browser.new_context()
    shared = other.new_page()
    shared.goto(page.url)
    settled(shared, "hang")
    other.close()

    page.go_back()
    settled(page, "Overview")


def test_the_week_is_a_click_from_the_overview_and_prints_on_two_sheets(page, base_url):
    page.goto(base_url)
    settled(page, "Overview")
    page.get_by_role("link", name="Weekly report").click()
    settled(page, "Week so far, 16 November to 22 November 2026")
    expect(page.get_by_text("The worst incident")).to_be_visible()

    with pypdfium2.PdfDocument(page.pdf(prefer_css_page_size=True)) as sheets:
        printed = "".join(sheet.get_textpage().get_text_range() for sheet in sheets)
        assert len(sheets) <= 2
    assert "Objectives and budgets" in printed
    assert "Previous week" not in printed


def test_from_the_fleet_to_a_gpu_and_to_a_run_by_marks_of_charts(page, base_url):
    page.goto(f"{base_url}/fleet")
    settled(page, "Fleet")
    click_mark(page, "rack-grid", 1)
    settled(page, "GPU 1, vm")

    page.go_back()
    settled(page, "Fleet")
    click_mark(page, "fleet-over-time", -1)
    settled(page, "slowlink")


def test_an_uploaded_recording_is_replayed_on_a_dashboard_of_its_own(page, browser, base_url):
    page.goto(f"{base_url}/data")
    settled(page, "Data")
    chosen = page.locator(".st-key-replay_upload input[type=file]")
    chosen.set_input_files(SAMPLE / "nvml.jsonl.gz")
    expect(page.get_by_role("button", name="Remove nvml.jsonl.gz")).to_be_visible()
    expect(page.get_by_test_id("stFileChipIconSpinner")).to_have_count(0)
    page.get_by_role("button", name="Start").click()

    opens = page.get_by_role("link", name="Open the replay")
    expect(opens).to_be_visible()
    other = browser.new_context()
    replay = other.new_page()
    replay.goto(str(opens.get_attribute("href")))
    expect(replay.locator(".st-key-replay_toggle")).to_be_visible()
    other.close()

    page.get_by_role("button", name="End the replay").click()
    expect(opens).to_have_count(0)


def test_a_query_is_run_and_its_rows_are_saved_and_a_metric_is_explored(page, base_url):
    page.goto(f"{base_url}/query")
    settled(page, "Query")
    page.get_by_label("SQL").fill("select run_id from marts.runs where run_id = 'main'")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("1 row")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert Path(download.value.path()).read_text(encoding="utf-8").split() == ["run_id", "main"]

    page.get_by_role("link", name="Explorer").click()
    settled(page, "Explorer")
    pick_first_row(page, "metric", "metric")
    expect(page.get_by_test_id("stPlotlyChart")).to_be_visible()
    charts_drawn(page)


def test_a_narrow_screen_has_cards_in_the_place_of_wide_tables(page, base_url):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{base_url}/findings")
    settled(page, "Findings")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    expect(page.locator(".st-key-pick_finding")).to_be_hidden()

    page.locator(".st-key-cards_of_finding").get_by_role("button", name="Open").first.click()
    expect(page).to_have_url(re.compile("finding="))
    settled(page, "Findings")
    expect(page.get_by_text("Evidence:")).to_be_visible()


class Hand:
    """Clicks, and counts them."""

    def __init__(self):
        self.clicks = 0

    def click(self, target, heading=None):
        """Click, and wait for the page of a heading where the click opens one."""
        self.clicks += 1
        target.click()
        if heading is not None:
            settled(target.page, heading)


@pytest.fixture
def hand(page, base_url):
    """Give a hand before the Overview."""
    page.set_viewport_size(SCREEN)
    page.goto(base_url)
    settled(page, "Overview")
    return Hand()


def menu(page, name):
    return page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True)


def tab_to(page, text):
    """Press Tab until what has the focus is called so."""
    for _ in range(TABS_MOST):
        page.keyboard.press("Tab")
        if re.search(text, page.evaluate(FOCUSED)):
            return
    raise AssertionError(f"{TABS_MOST} times Tab do not lead to {text}")


def test_on_call_reads_what_is_wrong_without_a_click_and_opens_it_with_one(page, hand):
    (since,) = SINCE.findall(page.locator(".gp-detail").inner_text())
    expect(page.locator(".gp-detail")).to_contain_text("owner")
    expect(page.get_by_role("button", name="Acknowledge")).to_be_visible()
    expect(page.locator(".gp-said")).to_have_count(1)
    expect(page.locator(".gp-action")).to_have_count(3)
    expect(page.locator(".gp-action").last).to_be_in_viewport(ratio=1)

    hand.click(page.locator(".st-key-status_do").get_by_role("link"))

    expect(page).to_have_url(re.compile(r"(nodes|run|findings)\?"))
    settled(page)
    expect(page.get_by_text(since).first).to_be_visible()
    assert hand.clicks == 1
    hand.click(page.get_by_role("link", name="Overview", exact=True), "Overview")
    hand.click(page.get_by_role("link", name="All findings"), "Findings")
    expect(page).to_have_url(re.compile("state=open"))


def test_on_call_finds_in_one_list_what_happened_on_a_node_in_a_minute(page, base_url):
    """The minute is kept from page to page."""
    hand = Hand()
    page.set_viewport_size(SCREEN)
    page.goto(f"{base_url}/?{MINUTE}")
    settled(page, "Overview")
    hand.click(menu(page, "Nodes"), "Nodes")
    pick_first_row(page, "of_node", "node", "Enter")

    assert hand.clicks <= 2
    expect(page.locator(".st-key-happened_brief")).to_be_in_viewport()
    hand.click(page.locator(".st-key-happened_brief button").first)
    expect(page.locator(".st-key-happened_chosen")).to_be_visible()

    hand.click(page.get_by_role("link", name=re.compile("main began on 4 of its GPUs")), "main")
    expect(page).to_have_url(re.compile(r"/run\?.*run=lab%2Fmain.*from=2026-11-20T12%3A31"))


def test_an_engineer_searches_a_run_by_keys_and_its_card_says_what_to_change(page, base_url):
    page.set_viewport_size(SCREEN)
    page.goto(f"{base_url}/waste")
    settled(page, "Waste")
    page.keyboard.press("/")
    text = page.get_by_label("Name, job id or UUID")
    expect(text).to_be_focused()
    page.keyboard.type("/main")
    expect(text).to_have_value("/main")  # where something is written it is a character
    text.press("Home")
    text.press("Delete")
    expect(page.get_by_role("dialog").get_by_role("link", name="main").first).to_be_visible()
    tab_to(page, "main")
    page.keyboard.press("Enter")
    settled(page, "main")

    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile("run="))
    expect(page.get_by_text("What to do").first).to_be_in_viewport()


def test_finance_has_a_month_as_a_file_with_three_clicks_and_a_manager_the_what_if(page, hand):
    expect(page.get_by_role("heading", name=re.compile("^What moved"))).to_be_in_viewport()
    hand.click(menu(page, "Cost"), "Cost")
    hand.click(page.get_by_test_id("stMain").get_by_role("radio", name="This month"))
    settled(page)
    with page.expect_download() as download:
        hand.click(page.get_by_role("button", name="CSV, all columns").first)

    assert download.value.suggested_filename.startswith("cost-by-account-")
    assert hand.clicks == 3

    hand.click(page.get_by_test_id("stMain").get_by_role("radio", name="What if"))
    expect(page).to_have_url(re.compile("part=what-if"))
    settled(page)


def test_the_keyboard_leads_from_the_overview_to_a_finding_to_what_it_names_and_back(page, hand):
    of_finding = page.locator('.st-key-status_others a[href*="finding="]').first
    tab_to(page, re.escape(of_finding.inner_text()))
    page.keyboard.press("Enter")
    settled(page, "Findings")
    expect(page.get_by_text("Evidence:")).to_be_in_viewport()

    tab_to(page, "Open (node|run|GPU) ")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"(nodes|run|gpu)\?"))
    settled(page)
    page.go_back()  # without a window Chromium does not take Alt and the arrow
    settled(page, "Findings")
    expect(page.get_by_text("Evidence:")).to_be_visible()
    tab_to(page, "2026-11-20 12:")  # the time range
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stPopoverBody").locator(":focus")).to_be_attached()
    assert hand.clicks == 0
