"""The systemd units that ship with the product."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from goodput_app.cli import main

UNITS = sorted((Path(__file__).parents[3] / "deploy/systemd").iterdir())
COMMANDS = {
    "goodput.service": ["serve"],
    "goodput-collect.service": ["collect"],
    "goodput-report.service": ["report", "--deliver"],
    "goodput-backup.service": ["backup", "/var/lib/goodput/backups", "--keep", "14"],
}


def parts(path):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    return unit


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_there_is_or_a_unit_that_does(path):
    unit = parts(path)

    if path.suffix == ".timer":
        assert path.with_suffix(".service") in UNITS
        assert unit["Install"]["WantedBy"] == "timers.target"
        return
    program, name, *options = unit["Service"]["ExecStart"].split()
    assert Path(program).name == "goodput"
    assert [name, *options] == COMMANDS[path.name]
    known = {
        option
        for one in main.main.get_command(click.Context(main.main), name).params
        for option in one.opts
    }
    assert known.issuperset(one for one in options if one.startswith("--"))
    is_started_by_a_timer = path.with_suffix(".timer") in UNITS
    assert is_started_by_a_timer or unit["Install"]["WantedBy"] == "multi-user.target"


def test_systemd_finds_nothing_wrong_with_them(tmp_path):
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    for path in UNITS:
        text = path.read_text().replace("/usr/local/bin/goodput", sys.executable)
        (tmp_path / path.name).write_text(text)

    found = subprocess.run(
        [analyze, "verify", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (found.returncode, found.stderr) == (0, "")
