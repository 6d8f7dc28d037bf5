"""The header of an SQL file: what a row is, its directives, and its columns.

A directive is a line `-- name: value`, clauses of the value are separated by semicolons, and
what follows `, since ` is for the reader. queries/README.md has the table of them.
"""

import re
from dataclasses import dataclass
from typing import Final

_STAGE = ("staging", "intermediate", "temp", "marts")
_NAMES = r"[\w.]+(?:, [\w.]+)*"
FORMS: Final[dict[str, tuple[tuple[str, ...], str]]] = {  # layers that may have it, its form
    "grain": ((), r"none(?: \(.+\))?|.+"),
    "keep": (("raw", "state"), rf".+?(?:; versions of {_NAMES})?"),
    "times": (
        ("raw",),
        rf"(?:by \w+)?(?:(?:; |^)observed {_NAMES})?(?:(?:; |^)planned {_NAMES})?",
    ),
    "materialised": (
        _STAGE,
        rf"(?:full|merged|attempts|runs|run_ids|job_runs|hourly(?: of the ledger)?|inline"
        rf"|by [\w/]+\.py)(?:; reads {_NAMES})?(?:; in \d+ parts)?",
    ),
    "change_tracking": (_STAGE, r"all|by \w+|\w+(?:, \w+)?"),
    "skip_if_empty": (_STAGE, r".+"),
    "evaluated": (_STAGE, r"first"),
    "access": ((*_STAGE, "billing", "state"), r"team|everyone"),
}
_DIRECTIVE = re.compile(rf"^--\s*(?P<key>{'|'.join(FORMS)})\s*:\s*(?P<value>.*)$")
_COLUMN = re.compile(r"^-- (?P<column>[a-z][a-z0-9_]*(?:, [a-z][a-z0-9_]*)*): (?P<meaning>.*)$")


@dataclass(frozen=True)
class Header:
    """A header by its parts; `directives` as they are written, without the reason.

    columns: what the lines that begin with one or several names say; see `columns.meanings`
    """

    description: str
    directives: dict[str, str]
    columns: dict[str, str]

    def clause(self, directive: str, word: str) -> str | None:
        """Return what follows a word at the start of a clause, None where no clause has it."""
        for clause in self.directives.get(directive, "").split(";"):
            if clause.strip().startswith(f"{word} "):
                return clause.strip().removeprefix(f"{word} ")
        return None

    def names(self, directive: str, word: str) -> list[str]:
        """Return the names that a clause lists."""
        return names(self.clause(directive, word) or "")


def names(text: str) -> list[str]:
    """Return the names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def header(layer: str, name: str, text: str) -> Header:
    """Return the header of a file's text.

    Raises ValueError where a directive is not one of its layer, or its value has another form.
    """
    description: list[str] = []
    directives: dict[str, str] = {}
    columns: dict[str, str] = {}
    current: str | None = None
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := _DIRECTIVE.match(line):
            directives[match["key"]] = match["value"].partition(", since ")[0].strip()
            current = None
        elif match := _COLUMN.match(line):
            current = match["column"]
            columns[current] = match["meaning"].strip()
        elif current is not None and line.startswith("--  "):
            columns[current] += " " + line.lstrip("- ").strip()
        else:
            description.append(line.removeprefix("--").strip())
    for key, value in directives.items():
        layers, form = FORMS[key]
        if layers and layer not in layers:
            raise ValueError(f"{layer}.{name}: '{key}' is a directive of {', '.join(layers)}")
        if not value or not re.fullmatch(form, value):
            raise ValueError(f"{layer}.{name}: '{key}: {value}' has not the form of its directive")
    return Header(" ".join(description).strip(), directives, columns)
