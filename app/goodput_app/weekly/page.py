"""The weekly report as one HTML page that needs nothing else: no script, no font, no picture."""

from markdown_it import MarkdownIt
from markupsafe import Markup

from goodput_billing.render import templates


def page(title: str, markdown: str) -> str:
    """Return the page; HTML in names of teams, runs and nodes is text in it."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    found = templates.template("goodput_billing.render", "page.html.j2")
    return found.render(title=title, body=Markup(body))  # noqa: S704 -- made of Markdown, without HTML
