"""The package as it is published: its name, command and description."""

import tomllib
from importlib import metadata
from pathlib import Path

from goodput_app import distribution

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_that_of_the_published_name():
    assert PROJECT["name"] == distribution.NAME
    assert distribution.version() == PROJECT["version"]


def test_the_command_is_called_goodput():
    (command,) = metadata.distribution(distribution.NAME).entry_points.select(
        group="console_scripts"
    )

    assert list(PROJECT["scripts"]) == [command.name] == ["goodput"]


def test_the_index_shows_licence_summary_and_supported_versions():
    found = metadata.metadata(distribution.NAME)

    assert found["License-Expression"] == "Apache-2.0"
    assert found["Summary"] == PROJECT["description"]
    supported = {c for c in PROJECT["classifiers"] if c.startswith("Programming Language")}
    assert "Programming Language :: Python :: 3.11" in supported
    assert set(found.get_all("Classifier") or ()) == set(PROJECT["classifiers"])


def test_the_lock_file_is_of_this_package():
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    names = [one["name"] for one in packages if one["source"] == {"editable": "."}]

    assert names == [distribution.NAME]
