"""The glossary: what each label on a screen means. `docs/glossary.md` is printed from it.

`python -m goodput_app.text.glossary > docs/glossary.md` after each change of `glossary.csv` or
of the categories.
"""

import csv
import functools
import re
import sys
from dataclasses import dataclass
from importlib.resources import files

CATEGORIES = files("goodput_queries") / "sql" / "reference" / "gpu_second_categories.csv"
GROUPS = files("goodput_queries") / "sql" / "reference" / "ledger_groups.csv"
TERMS = files("goodput_app.text") / "glossary.csv"
_DENOMINATOR = re.compile(r" \([^)]*\)$")
_HEAD = """# Glossary

Each term and measure once. The hover texts of the screens are these definitions; this page is
printed from `app/goodput_app/text/glossary.csv` and the categories (see decision 0042).

The database has GPU time in integer milliseconds (`gpu_ms`). A ratio that is not measured is empty,
and the column `*_reason` beside it says why. How evidence decides a category:
[accounting rules](accounting-rules.md). Amounts of money: [billing rules](billing-rules.md).
"""


@dataclass(frozen=True)
class Entry:
    """A term with its definition; formula, view and unit are empty for a term that is no measure.

    aliases: other labels of the same measure, separated by `; `
    """

    term: str
    definition: str
    formula: str
    view: str
    unit: str
    aliases: str

    @property
    def hover(self) -> str:
        """Return the hover text of a label."""
        return f"{self.definition} `{self.formula}`" if self.formula else self.definition


@functools.cache
def entries() -> dict[str, Entry]:
    """Return the entries by term and by alias."""
    rows = [Entry(**row) for row in csv.DictReader(TERMS.read_text("utf-8").splitlines())]
    aliases = {alias: row for row in rows for alias in row.aliases.split("; ") if alias}
    return aliases | {row.term: row for row in rows}


def find(label: str) -> Entry | None:
    """Return the entry of a label, without its denominator or unit in brackets."""
    name = _DENOMINATOR.sub("", label)
    return entries().get(name) or entries().get(name[:1].upper() + name[1:])


def hover(label: str) -> str:
    """Return the hover text of a label. Raises KeyError for one that the glossary lacks."""
    if (entry := find(label)) is None:
        raise KeyError(f"{label!r} is not in {TERMS}")
    return entry.hover


def meaning(label: str) -> str | None:
    """Return what an entry of a legend means: a term, a category, or a group of categories."""
    if (entry := find(label)) is not None:
        return entry.definition
    return _categories().get(label)


def about(text: str) -> list[Entry]:
    """Return the entry of a label or category, or all whose term or definition has the text."""
    if (entry := find(text)) is not None:
        return [entry]
    named = {label: Entry(label, said, "", "", "", "") for label, said in _categories().items()}
    if text in named:
        return [named[text]]
    known = {entry.term: entry for entry in entries().values()} | named
    return [one for one in known.values() if text.lower() in f"{one.term} {one.definition}".lower()]


@functools.cache
def _categories() -> dict[str, str]:
    """Return the definitions of categories, and of their groups the categories, by label."""
    categories = list(csv.DictReader(CATEGORIES.read_text("utf-8").splitlines()))
    labels = {c["category"]: c["label"] for c in categories}
    parts: dict[str, list[str]] = {}
    for row in csv.DictReader(GROUPS.read_text("utf-8").splitlines()):
        parts.setdefault(row["label"], []).append(labels[row["category"]])
    groups = {label: f"{', '.join(members)}." for label, members in parts.items()}
    return groups | {c["label"]: c["definition"] for c in categories}


def page() -> str:
    """Return the glossary as Markdown."""
    lines = [_HEAD, "## Terms and measures", ""]
    lines += [
        f"- **{e.term}**{_place(e)}: {e.hover}"
        for term, e in sorted(entries().items(), key=lambda item: item[0].lower())
        if term == e.term
    ]
    categories = list(csv.DictReader(CATEGORIES.read_text("utf-8").splitlines()))
    lines += ["", "## Categories", ""]
    lines += ["Every GPU is in exactly one category at every moment.", ""]
    lines += _table(
        ("category", "code", "label", "definition", "kind"),
        [
            (_code(c["category"]), c["code"], c["label"], c["definition"], c["kind"])
            for c in categories
        ],
    )
    return "\n".join([*lines, ""])


def _place(entry: Entry) -> str:
    """Return unit and view of an entry in brackets; nothing where it has neither."""
    given = [text for text in (entry.unit, _code(entry.view)) if text]
    return f" ({', '.join(given)})" if given else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    sys.stdout.write(page())
