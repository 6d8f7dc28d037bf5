"""The rendered containers as processes: as their user, writing to their mounts alone."""

import os
import re
import shlex
import shutil
import signal
import tempfile
from pathlib import Path

import httpx
import pytest
from tests.app.served import GOODPUT, PATIENCE_S, program
from tests.helm_chart.test_rendering import ALL, SIGN_IN, USER, of_kind, settings_of

from goodput_lake.tables.lake import Lake


@pytest.mark.machine
def test_the_server_starts_as_its_user_with_nothing_to_write_to_but_its_folders(folder):
    values = ALL | {"settings": SIGN_IN.partition("[lake]")[0], "collector": {}}
    with started(of_kind("Deployment", values), folder, values) as process:
        url = process.stdout.readline().strip()
        asked = httpx.get(f"{url}/healthz", headers={"Host": "10.244.0.7:8501"}, timeout=PATIENCE_S)
        metrics = {host: httpx.get(f"{url}/metrics",
                                   headers={"Host": host, "Authorization": "Bearer of-metrics"},
                                   timeout=PATIENCE_S).status_code
                   for host in ("goodput.goodput.svc:8501", "10.244.0.7:8501")}  # fmt: skip
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == 0
        assert asked.json()["status"] == "ok"
        assert metrics == {"goodput.goodput.svc:8501": 200, "10.244.0.7:8501": 421}
        assert [one.name for one in (folder / "data").iterdir()] == ["goodput.duckdb"]
        assert [one.name for one in (folder / "tmp").iterdir()] == ["cache"]


@pytest.mark.machine
def test_the_collector_polls_under_the_name_of_its_node(folder):
    """Where no GPU is it tries again; what it reads goes into the lake."""
    lake = folder / "lake"
    Lake.create(str(lake), buckets=1)
    own(lake)
    values = ALL | {"settings": SIGN_IN.replace("s3://metrics/goodput", f"file://{lake}")}
    with started(of_kind("DaemonSet", values), folder, values) as process:
        said = process.stderr.readline()
        process.send_signal(signal.SIGTERM)

        assert said == "Polling nvml (NVML on gpu-7). Ctrl-C ends it.\n"
        assert process.wait(PATIENCE_S) == 0


@pytest.fixture
def folder():
    """Give a folder that the user of the image may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def own(folder):
    """Give a folder to the user of the image, where we may: else we are that user."""
    if os.geteuid() == 0:
        for one in (folder, *folder.rglob("*")):
            os.chown(one, USER, USER)


def started(workload, folder, values):
    """Run the container of a workload as a process, its mounts as folders; on any free port."""
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    places = {one["mountPath"]: folder / one["name"] for one in container["volumeMounts"]}
    for place in places.values():
        place.mkdir()
        own(place)
    name = workload["metadata"]["name"]
    (folder / "settings" / "goodput.toml").write_text(settings_of(values)[name], encoding="utf-8")

    def here(text):
        paths = re.compile(rf"(?<![\w/])({'|'.join(places)})(?![\w-])")
        return paths.sub(lambda found: str(places[found[1]]), text).replace("=8501", "=0")

    given = {one["name"]: here(one.get("value", "")) for one in container["env"]}
    secret = {"GOODPUT_METRICS_TOKEN": "of-metrics"}
    of_pod = {"NODE_NAME": "gpu-7", "PYTHON_CPU_COUNT": "4", "HOME": "/", **secret}
    command = [here(one) for one in [*container.get("command", ()), *container["args"]]]
    path = f"{bin_folder(folder)}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **given, **of_pod}
    return program([*as_user(), *command], cwd=places[container["workingDir"]], env=env)


def as_user():
    """Return what runs a command as the user of the image; where we are not root, as ourselves."""
    if os.geteuid() != 0:
        return []
    if (program := shutil.which("setpriv")) is None:
        pytest.skip("the program setpriv is not installed (apt-get install util-linux)")
    reads_all = "+dac_read_search"  # this Python may lie in root's home
    ids = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    return [program, *ids, f"--inh-caps={reads_all}", f"--ambient-caps={reads_all}"]


def bin_folder(folder):
    """Return a folder with `goodput`, as this Python runs it."""
    program = folder / "bin" / "goodput"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(GOODPUT)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program.parent
