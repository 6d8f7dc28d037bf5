"""Take the README's pictures of the demo: `make screenshots`.

The demo is the recorded session and a made-up fleet, served as `goodput demo` does; nothing in the
pictures is drawn by hand.
"""

import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from tests.browser.conftest import CHROMIUM, FLAGS, serving
from tests.browser.steps import charts_drawn, settled

from goodput_synthetic.demo import demo_database

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


def main():
    """Serve the demo and write a picture of each page; return the exit code."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with serving(demo_database(sample_data=ROOT / "sample_data", gpus=GPUS)) as url:
        take(url)
    return 0


def take(url):
    """Write the pictures of a server's pages."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
        for name, (path, heading) in PAGES.items():
            page.goto(f"{url}{path}", timeout=WAIT_MS)
            settled(page, heading)
            charts_drawn(page)
            page.screenshot(path=PICTURES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
