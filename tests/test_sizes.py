"""Sizes that keep a listing readable: lines of a module, modules of a folder, lines of a function.

An exception is a line in a table with its reason; one that is no longer needed fails, too.
"""

import ast
import gc
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULE_LINES, FOLDER_MODULES, FUNCTION_LINES = 400, 15, 60

LONG_MODULES = {
    "ingest/goodput_emitter.py": "one file that users copy into their training code",
}
LARGE_FOLDERS = {
    "app/goodput_app/server": "each part of the way of a request is one module",
    "tests": "what all tests share, and tests of the repository as a whole",
    "app/goodput_app/cli": "a command is found by the name of its module",
    "app/goodput_app/dashboard/data": "pages read through one module each",
    "app/goodput_app/dashboard/pages": "a page is found by the name of its module",
    "ingest/goodput_ingest/sources/job_logs": "a training framework is one module",
    "ingest/goodput_ingest/sources/nvml": "runs on nodes as one package without the others",
    "tests/app/server": "one server, whose parts are asked through it",
}
LONG_FUNCTIONS = {
    "ingest/goodput_synthetic/fleet/stories.py:_of_a_day": "a list of what happens on a day",
    "queries/goodput_queries/evidence/load.py:_merge": "one SQL statement",
    "queries/goodput_queries/evidence/retention.py:confirmed_end_ms": "one SQL statement",
    "tests/oracle/files.py:write": "a file for each source",
    "tests/oracle/world.py:_events": "the life of a job in order",
}


@cache
def modules():
    """Return the Python files of the repository, without those that Git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return tuple(path for name in listed.stdout.splitlines() if (path := ROOT / name).exists())


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def test_no_module_is_over_400_lines():
    long = {
        name_of(path)
        for path in modules()
        if path.read_text(encoding="utf-8").count("\n") > MODULE_LINES
    }

    assert long == set(LONG_MODULES)


def test_no_folder_has_more_than_15_modules():
    counted = Counter(name_of(path.parent) for path in modules() if path.name != "__init__.py")

    assert {name for name, number in counted.items() if number > FOLDER_MODULES} == set(
        LARGE_FOLDERS
    )


def functions(body):
    """Yield the functions of a module and its classes; one within another is shorter than that."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If | ast.With | ast.Try):
            yield from functions(node.body)


@pytest.mark.usefixtures("all_packages")
def test_no_function_is_over_60_lines():
    gc.disable()  # trees have no cycles, and each search goes through all that tests have made
    long = {
        f"{name_of(path)}:{node.name}"
        for path in modules()
        for node in functions(ast.parse(path.read_text(encoding="utf-8")).body)
        if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    }
    gc.enable()

    assert long == set(LONG_FUNCTIONS)
