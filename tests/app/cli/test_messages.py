"""What messages tell people to type: it has to be there."""

import ast
import re
from pathlib import Path

import click
import pytest

from goodput_app.cli import main
from goodput_queries.packages import COMMANDS, offered

FOREIGN = re.compile(r"`(?!goodput )\w[^`]*`")  # another program's command line
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+\b")
MODULES = [
    path
    for folder in ("ingest", "queries")
    for path in sorted((Path(__file__).parents[3] / folder).rglob("*.py"))
    if path.name != "command.py"  # which defines options
    and OPTION.search(path.read_text(encoding="utf-8"))
]
FOREIGN_OPTIONS = {  # of the commands that live sources run
    *("--json", "--noconvert", "--delimiter"),  # Slurm's
    *("--no-pager", "--output", "--output-fields", "--after-cursor", "--lines", "--since"),
    *("--timestamps", "--reflink", "--metric-labels-allowlist"),  # kubectl's, cp's, its exporter's
    *("--interval", "--slow-interval", "--seconds"),  # of the recorder of NVML
}

CONTEXT = click.Context(main.main)
INSTALLED = (
    name
    for name, (module, _) in main.COMMANDS.items()
    if module != main.OF_PACKAGE or any(p.name == name for p in offered(COMMANDS))
)
OPTIONS = FOREIGN_OPTIONS | {
    option
    for command in (main.main, *(main.main.get_command(CONTEXT, name) for name in INSTALLED))
    for parameter in command.params
    if isinstance(parameter, click.Option)
    for option in parameter.opts
}


def texts(tree):
    """Yield the texts of a module but its docstrings, formatted ones as one."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in [*ast.walk(tree)]:
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            del node.body[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(getattr(part, "value", "")) for part in node.values)
        elif isinstance(getattr(node, "value", None), str):
            yield node.value


@pytest.mark.parametrize("module", MODULES, ids=lambda path: "-".join(path.parts[-2:]))
def test_an_option_that_a_message_names_is_there(module):
    tree = ast.parse(module.read_text(encoding="utf-8"))

    assert {o for text in texts(tree) for o in OPTION.findall(FOREIGN.sub("", text))} <= OPTIONS
