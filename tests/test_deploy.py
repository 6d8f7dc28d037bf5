"""What `deploy/` and the Dockerfile name exists, and their commands are ones that Goodput has."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from goodput_app.cli.main import main
from goodput_app.settings import FILE_VARIABLE, settings
from goodput_ingest.live.config import collectors

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = ROOT / "deploy" / "compose"
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def parsed(arguments: list[str]) -> click.Context:
    """Return the context of a command line; raises UsageError for one that is wrong."""
    program, name, *rest = arguments
    assert Path(program).name == "goodput"
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command.make_context(name, rest)


def test_the_image_serves_on_the_port_that_its_health_check_asks() -> None:
    command = re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert command is not None
    found = parsed(json.loads(command[1])).params

    assert (found["address"], found["port"], found["is_insecure"]) == ("0.0.0.0", 8501, True)  # noqa: S104
    assert "EXPOSE 8501\n" in DOCKERFILE
    assert "http://127.0.0.1:8501/healthz" in DOCKERFILE


def test_files_that_the_image_copies_exist_and_are_all_that_a_wheel_needs() -> None:
    lines = re.findall(r"^COPY (\w.*) \S+$", DOCKERFILE, re.MULTILINE)
    copied = set(" ".join(lines).split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {Path(path).parts[0] for path in (*wheel["packages"], *wheel["force-include"])}

    assert {name for name in copied if not (ROOT / name).exists()} == set()
    assert needed | {project["project"]["readme"], "pyproject.toml"} <= copied


def test_files_that_compose_mounts_exist() -> None:
    text = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
    mounted = re.findall(r"^\s+- \./([^:]+):", text, re.MULTILINE)
    context = re.search(r"build: (\S+)", text)

    assert {name for name in mounted if not (COMPOSE / name).is_file()} == set()
    assert len(mounted) == 2
    assert context is not None
    assert (COMPOSE / context[1]).resolve() == ROOT


def test_settings_of_compose_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(COMPOSE / "goodput.toml"))
    settings.cache_clear()
    found = settings()

    asked = collectors(found.collect, cluster=found.ingest.cluster, timezone=None)
    assert [(one.reads, one.origin) for one in asked] == [("prometheus", "http://prometheus:9090")]
    assert Path(found.db).is_relative_to("/var/lib/goodput")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_commands_of_units_parse(unit: Path) -> None:
    commands = re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(commands) == 1
    parsed(shlex.split(commands[0]))
