"""Take the README's pictures of the demo: `make screenshots`.

The demo is the recorded session and a made-up fleet, served as `goodput demo` does; nothing in the
pictures is drawn by hand.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright
from tests.browser.conftest import CHROMIUM, FLAGS

from goodput_app.demo import demo_database

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
GPUS = 512
SIZE = {"width": 1440, "height": 1000}
PAGES = {
    "overview": ("/?cluster=atlas", "Overview"),
    "fleet": ("/fleet?cluster=atlas", "Fleet"),
    "run": ("/run?run=lab/main", "main"),
}
WAIT_MS = 120_000


def main() -> int:
    """Serve the demo and write a picture of each page; return the exit code."""
    database = demo_database(sample_data=ROOT / "sample_data", gpus=GPUS)
    goodput = Path(sys.executable).with_name("goodput")
    command = [str(goodput), "serve", "--db", str(database)]
    PICTURES.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = next(filter(None, (re.search(r"http://[\w.:]+", s) for s in server.stdout)))
            take(found[0].rstrip("/"))
        finally:
            server.terminate()
    return 0


def take(url: str) -> None:
    """Write the pictures of a server's pages."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
        for name, (path, heading) in PAGES.items():
            page.goto(f"{url}{path}", timeout=WAIT_MS)
            settle(page, heading)
            page.screenshot(path=PICTURES / f"{name}.png")
        browser.close()


def settle(page: Page, heading: str) -> None:
    """Wait until the page is drawn."""
    expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible(timeout=WAIT_MS)
    app = page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=WAIT_MS)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=WAIT_MS)
    expect(page.get_by_text("being evaluated")).to_have_count(0, timeout=WAIT_MS)
    page.wait_for_timeout(3000)  # charts draw after their data has come


if __name__ == "__main__":
    sys.exit(main())
