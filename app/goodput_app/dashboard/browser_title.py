"""The title of the browser's tab: which page, and of what."""

from collections.abc import Mapping

NAME_MAX_CHARS = 60  # a tab shows fewer, the list of all tabs about as many
NAMED_BY = {"Run": "run", "Nodes": "node", "GPU": "gpu", "Help": "doc"}


def browser_title(page: str, params: Mapping[str, str]) -> str:
    """Return the title of a page, with the name of the one thing that it shows.

    params: of the link. A name is the last part of its key: `main` of the run `lab/main`.
    """
    name = params.get(NAMED_BY.get(page, ""), "").rpartition("/")[2]
    shown = "".join(c for c in name[:NAME_MAX_CHARS] if c.isprintable())
    return f"{page} {shown} · Goodput" if shown else f"{page} · Goodput"
