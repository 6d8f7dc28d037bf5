"""Which versions of Python this machine has, of those that the project supports."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
PYENV = Path.home() / ".pyenv" / "versions"


def supported_pythons():
    """Return the oldest and the newest Python that are here and that the project names."""
    found = [path for minor in declared_minors() if (path := _path(minor)) is not None]
    return found[:1] + found[1:][-1:]


def declared_minors():
    """Return the minor versions of Python 3 in the project's classifiers, ascending."""
    classifiers = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["classifiers"]
    named = (re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", c) for c in classifiers)
    return sorted(int(one[1]) for one in named if one)


def _path(minor):
    name = f"python3.{minor}"
    if sys.version_info[:2] == (3, minor) and sys.prefix == sys.base_prefix:
        return sys.executable
    installed = sorted(PYENV.glob(f"3.{minor}.*/bin/{name}"))
    if installed:  # the command of this name on the path may be pyenv's, which asks for a choice
        return str(installed[-1])
    return shutil.which(name)
