"""Opens a URL in Chromium and prints the headline, as a person sees it; exit code 1 without one.

Runs in an environment of its own, which has Playwright and nothing of Goodput:
`python see.py URL CHROMIUM`.
"""

import re
import sys

from playwright.sync_api import expect, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
WAIT_MS = 120_000
RATIO = re.compile(r"\d+(\.\d+)?\s?%")


def main(url, chromium):
    """Print the title and the headline of the first page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(url)
        title = page.get_by_role("heading", level=1).first
        expect(title).to_be_visible(timeout=WAIT_MS)
        tile = page.locator(".gp-head").first
        expect(tile).to_contain_text(RATIO, timeout=WAIT_MS)
        errors = page.locator("[data-testid=stException]").count()
        print(title.inner_text(), "-", " ".join(tile.inner_text().split()))  # noqa: T201
        browser.close()
        if errors:
            sys.exit(f"{errors} exceptions are shown on the page")


if __name__ == "__main__":
    main(*sys.argv[1:])
