"""From what is wrong now to who has it, and from a fix to its evidence, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, Position, expect
from tests.browser.test_journeys import pick_first_row, settled, shoot

pytestmark = pytest.mark.machine
WRAPPED: Position = {"x": 17, "y": 62}  # rows of more than one line


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
    pick_first_row(page, "finding", WRAPPED)
    evidence = page.get_by_text("Evidence:")
    expect(evidence).to_be_visible()
    shoot(page, "finding")


def test_from_the_top_fix_to_its_findings_and_back(page: Page, base_url: str) -> None:
    page.goto(base_url)
    expect(page.get_by_text("What to do first", exact=True)).to_be_visible()
    settled(page)

    pick_first_row(page, "fix", WRAPPED)
    opens = page.get_by_role("link", name="Open its findings")
    expect(opens).to_be_visible()
    opens.click()
    expect(page.get_by_role("heading", name="Findings", exact=True).first).to_be_visible()
    expect(page.get_by_text("of this time range are recoverable, at least")).to_be_visible()
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
    pick_first_row(page, "finding", WRAPPED)
    page.get_by_label("Your name").fill("ops")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("says")).to_be_visible()
    settled(page)

    command = [str(Path(sys.executable).with_name("goodput")), "build", "--full", "--db"]
    subprocess.run([*command, str(served)], check=True, capture_output=True)

    page.reload()
    settled(page)
    # the table has it for screen readers, not to be seen
    expect(page.get_by_text("acknowledged").filter(visible=True).first).to_be_visible()
