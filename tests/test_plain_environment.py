"""An environment without extras, without development packages, or with a package missing."""

import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module, metadata

import click
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.ingest.golden_cases import golden_path
from tests.tables import each

from goodput_app.cli import main
from goodput_app.distribution import NAME
from goodput_queries.errors import install_command

CORE = (
    "goodput_app", "goodput_billing", "goodput_ingest", "goodput_messages", "goodput_queries",
    "goodput_scenarios",
)  # fmt: skip
OPTIONAL = ("goodput_formats_extra", "goodput_lake", "goodput_serving", "goodput_synthetic")
# the parts that need an extra: the MCP server, and a lake with the engine of Ray
OF_EXTRAS = ("goodput_app.server.agents.protocol", "goodput_lake")
WITHOUT = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise {error}
sys.meta_path.insert(0, Missing())
{program}
"""

MISSING = 'ModuleNotFoundError(f"No module named {name!r}", name=name)'
BROKEN = 'ImportError("libstdc++.so.6: cannot open shared object file", name=name)'


def python(program, *missing, error=MISSING):
    """Run a program in a process that lacks some packages."""
    text = WITHOUT.format(missing=missing, program=program, error=error)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, check=False, text=True, timeout=120
    )


def goodput(*words, without=(), error=MISSING):
    """Run a command of the product in such a process."""
    called = f"sys.argv[1:] = {words}; main()"
    return python(f"from goodput_app.__main__ import main; {called}", *without, error=error)


def packages_of(extra):
    """Return the packages that the project itself asks for, or those of an extra."""
    declared = map(Requirement, metadata.requires(NAME) or ())
    return {
        canonicalize_name(one.name)
        for one in declared
        if (one.marker is None) == (extra is None)
        and (extra is None or one.marker is None or one.marker.evaluate({"extra": extra}))
    }


@pytest.mark.usefixtures("all_packages")
def test_everything_else_is_imported_without_the_extras():
    names = [
        module.name
        for package in CORE + OPTIONAL
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
        if not module.name.startswith(OF_EXTRAS)
        and not module.name.startswith("goodput_app.dashboard.pages.")  # scripts
        and module.name not in ("goodput_app.__main__", "goodput_app.dashboard.main")
    ]
    program = f"import importlib\nfor name in {names}: importlib.import_module(name)"

    extras = set().union(*map(packages_of, ("ray", "mcp", "receive"))) - packages_of(None)
    installed = metadata.packages_distributions().items()
    gone = [module for module, owners in installed if extras & {*map(canonicalize_name, owners)}]
    done = python(program, *gone)

    assert len(names) > 500
    assert done.returncode == 0, done.stderr


# in which the packages of their own are not installed
GONE = f"""
from importlib.machinery import PathFinder
found = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, *of: None if name.partition(".")[0] in {OPTIONAL} else found(name, *of)
)
from goodput_app.cli.main import main
for words in {{commands}}:
    main(words, standalone_mode=False)
"""


def alone(db, *commands):
    """Run commands on a database in a process that has no package of its own."""
    return python(GONE.replace("{commands}", repr([[*one, "--db", str(db)] for one in commands])))


@pytest.fixture
def core(tmp_path, empty_database):
    """Give a database that was made with all packages, and opened without them since."""
    db = shutil.copyfile(empty_database, tmp_path / "core.duckdb")
    assert "goodput_serving, which is not installed" in alone(db, ["doctor"]).stdout
    return db


def test_the_core_works_without_the_packages_of_their_own(core):
    log = golden_path("job_events/killed_rank_and_restart/input.jsonl")
    done = alone(core, ["ingest", "auto", str(log)], ["ledger"], ["check"])

    assert (done.returncode, "lost_work" in done.stdout) == (0, True), done.stderr


def test_the_help_of_the_lake_needs_no_extra():
    done = goodput("lake", "-h", without=("deltalake", "obstore"))

    assert (done.returncode, "  create " in done.stdout) == (0, True), done.stderr


def test_a_command_of_a_package_that_is_gone_is_one_sentence():
    done = alone("none", ["lake", "status"])

    assert done.stderr.splitlines()[-1].endswith(
        "'lake' is of the package goodput_lake, which is not installed; install Goodput again, "
        "with all its packages."
    )


def test_the_list_of_commands_imports_neither_polars_nor_duckdb():
    program = (
        "import sys; from goodput_app.cli.main import main; main(['--help'], "
        "standalone_mode=False); print({'polars', 'duckdb', 'rich', 'httpx'} & {*sys.modules})"
    )

    assert python(program).stdout.splitlines()[-1] == "set()"


@pytest.mark.usefixtures("all_packages")
def test_the_list_of_commands_has_the_first_line_of_their_help():
    context = click.Context(main.main)
    found = {name: main.main.get_command(context, name) for name in main.COMMANDS}

    assert {name: line for name, (_, line, *_) in main.COMMANDS.items()} == {
        name: command.get_short_help_str(limit=100) for name, command in found.items()
    }


@each(
    ("click", MISSING, "package 'click' is not installed", "install --force-reinstall"),
    ("polars", MISSING, "package 'polars' is not installed", "install --force-reinstall"),
    ("duckdb", BROKEN, "a package cannot be imported (libstdc++.so.6: cannot open", "check"),
)
def test_a_package_that_is_missing_or_does_not_load_is_one_sentence(package, error, said, remedy):
    done = goodput("ledger", without=(package,), error=error)

    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert said in sentence
    assert f"{sys.executable} -m pip {remedy}" in sentence


@pytest.mark.usefixtures("all_packages")
@each(
    (["lake", "create", "--lake", "/nowhere"], "lake", "a lake", ("deltalake", "obstore")),
    (["mcp", "--db", "/nowhere"], "mcp", "an MCP server", ("mcp",)),
)
def test_a_missing_extra_names_the_packages_to_install(command, extra, what, packages):
    done = goodput(*command, without=packages[:1])

    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence == f"{what} needs packages that are not installed: {install_command(extra)}"
    assert all(package in sentence for package in packages)
