"""The page of sources: `python -m goodput_app.text.connect > docs/connect.md`.

A source's folder has its rows of the table and its sections in `connect.md`; that of the folder
above has what is of no one source.
"""

import os
import re
import sys
from importlib.resources import files
from pathlib import Path

from goodput_ingest.sources.registry import sources

DOCS = Path(str(files("goodput_app"))).parents[1] / "docs"
COMMON = Path(str(files("goodput_ingest"))) / "sources" / "connect.md"
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def page() -> str:
    """Return the page in Markdown: sources of all packages, by the name of their folder."""
    packages = {source.__module__.partition(".")[0] for source in sources().values()}
    found = {file for name in packages for file in Path(str(files(name))).rglob("connect.md")}
    rows, sections = [], []
    for file in sorted(found - {COMMON}, key=lambda file: file.parent.name):
        table, _, rest = _from_docs(file, found).partition("\n\n")
        rows += table.splitlines()[2:]
        sections += [rest] if rest else []
    text = _from_docs(COMMON, found).replace("<!-- rows -->", "\n".join(sorted(rows)))
    return text.replace("<!-- sections -->\n", "\n".join(sections))


def _from_docs(file: Path, pages: set[Path]) -> str:
    """Return a text with links as from the folder of the page, those to its parts as within it."""

    def link(found: re.Match[str]) -> str:
        path, anchor = (file.parent / found[1]).resolve(), found[2] or ""
        return f"]({anchor if path in pages else os.path.relpath(path, DOCS) + anchor})"

    return _LINK.sub(link, file.read_text("utf-8"))


if __name__ == "__main__":
    sys.stdout.write(page())
