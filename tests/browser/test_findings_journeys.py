"""From what is wrong now to who has it, and from a fix to its evidence, in a real browser."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Error, Page, expect
from tests.browser.test_journeys import settled, shoot

pytestmark = pytest.mark.browser
ROW = {"x": 17, "y": 62}


def pick(page: Page, number: int, param: str) -> None:
    """Tick the first row of a table of the page; it is a canvas, so by place."""
    table = page.locator("[data-testid=stDataFrame]:visible").nth(number)
    for _ in range(4):  # a click on a table that is being redrawn is lost
        table.scroll_into_view_if_needed()
        table.click(position=ROW)
        with contextlib.suppress(Error):
            page.wait_for_url(re.compile(rf"[?&]{param}="), timeout=8_000)
            return
    pytest.fail(f"no row of table {number} could be picked")


def test_from_what_is_wrong_now_to_the_rank_that_slowed_a_run(page: Page, base_url: str) -> None:
    """One click shows the late ranks and the lost link, the next one opens the run."""
    page.goto(base_url)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    settled(page)
    shoot(page, "overview-now")

    page.get_by_role("link", name="Late ranks, slow links").click()
    expect(page.get_by_role("heading", name="Findings", exact=True).first).to_be_visible()
    settled(page)
    assert "rules=slow_rank" in page.url
    pick(page, 1, "finding")
    evidence = page.get_by_text("Evidence:")
    expect(evidence).to_be_visible()
    shoot(page, "finding")


def test_from_the_top_fix_to_its_findings_and_back(page: Page, base_url: str) -> None:
    page.goto(base_url)
    expect(page.get_by_text("What to do first")).to_be_visible()
    settled(page)

    pick(page, 0, "fix")
    opens = page.get_by_role("link", name="Open its findings")
    expect(opens).to_be_visible()
    opens.click()
    expect(page.get_by_role("heading", name="Findings", exact=True).first).to_be_visible()
    expect(page.get_by_text("of this time range come back, at least")).to_be_visible()
    assert "fix=" in page.url
    settled(page)
    shoot(page, "fix")

    page.go_back()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_what_is_acknowledged_stays_so_after_a_full_build(
    page: Page, base_url: str, served: Path
) -> None:
    page.goto(f"{base_url}/findings?rules=input_stall")
    settled(page)
    pick(page, 1, "finding")
    page.get_by_label("Your name").fill("ops")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("says")).to_be_visible()
    settled(page)

    command = [str(Path(sys.executable).with_name("goodput")), "build", "--full", "--db"]
    subprocess.run([*command, str(served)], check=True, capture_output=True)

    page.reload()
    settled(page)
    expect(page.get_by_text("acknowledged").first).to_be_visible()
