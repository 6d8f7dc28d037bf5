"""Whoever asks reaches the answer in as many clicks as the targets of the screens allow."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.steps import pick_first_row, settled

pytestmark = pytest.mark.machine
TABS_MOST = 120
SINCE = re.compile(r"Since (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
FOCUSED = "document.activeElement.matches('a, button') ? document.activeElement.innerText : ''"


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
    page.set_viewport_size({"width": 1400, "height": 900})
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

    hand.click(page.locator(".st-key-status_do").get_by_role("link"))

    expect(page).to_have_url(re.compile(r"(nodes|run|findings)\?"))
    settled(page)
    expect(page.get_by_text(since).first).to_be_visible()
    assert hand.clicks == 1


def test_on_call_finds_what_happened_on_a_node_in_one_list(page, hand):
    hand.click(menu(page, "Nodes"), "Nodes")
    pick_first_row(page, "of_node", "node")

    assert hand.clicks <= 2
    expect(page.locator(".st-key-happened_brief")).to_be_in_viewport()
    hand.click(page.locator(".st-key-happened_brief button").first)
    expect(page.locator(".st-key-happened_chosen")).to_be_visible()


def test_an_engineer_searches_a_run_whose_card_says_what_to_change(page, hand, base_url):
    page.goto(f"{base_url}/waste")
    settled(page, "Waste")
    page.keyboard.press("/")
    text = page.get_by_label("Name, job id or UUID")
    text.press("/")
    expect(text).to_have_value("/")  # where something is written it is a character
    text.fill("main")
    page.keyboard.press("Enter")
    result = page.get_by_role("dialog").get_by_role("link", name="main").first
    expect(result).to_be_visible()
    hand.click(result, "main")

    assert hand.clicks == 1
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile("run="))
    expect(page.get_by_text("What to do").first).to_be_in_viewport()


def test_finance_has_a_month_as_a_file_with_three_clicks(page, hand):
    hand.click(menu(page, "Cost"), "Cost")
    hand.click(page.get_by_test_id("stMain").get_by_role("radio", name="This month"))
    settled(page)
    with page.expect_download() as download:
        hand.click(page.get_by_role("button", name="CSV", exact=True).first)

    assert download.value.suggested_filename.startswith("cost-by-account-")
    assert hand.clicks == 3


def test_a_manager_sees_the_change_at_once_and_the_what_if_with_two_clicks(page, hand):
    expect(page.get_by_role("heading", name=re.compile("^What moved"))).to_be_in_viewport()

    hand.click(menu(page, "Cost"), "Cost")
    hand.click(page.get_by_test_id("stMain").get_by_role("radio", name="What if"))

    expect(page).to_have_url(re.compile("part=what-if"))
    settled(page)
    assert hand.clicks == 2


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
    assert hand.clicks == 0
