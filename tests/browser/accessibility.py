"""What axe-core finds on a page against WCAG 2.1 A and AA, in light and in dark."""

from axe_playwright_python.sync_playwright import Axe
from tests.browser.steps import charts_drawn, settled

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # what else is the same in both schemes
IS_DARK = """is_dark => {
    const parts = getComputedStyle(document.querySelector(".stApp")).backgroundColor.match(/\\d+/g)
    return (Math.max(...parts.slice(0, 3).map(Number)) < 128) === is_dark
}"""


def violations(page):
    """Return the elements of a page that break a rule, by scheme and rule; leave it in light."""
    found = _broken(page, "light", LEVELS)
    _show(page, "dark")
    found |= _broken(page, "dark", OF_COLOURS)
    _show(page, "light")
    return found


def _show(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(IS_DARK, arg=scheme == "dark")


def _broken(page, scheme, rules):
    settled(page)
    charts_drawn(page)
    broken = Axe().run(page, options={"runOnly": rules}).response["violations"]
    return {(scheme, rule["id"]): [node["html"] for node in rule["nodes"]] for rule in broken}
