"""The chart and the source `kubernetes-api` at a real API server; CONTRIBUTING.md says which."""

import contextlib
import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.app.receivers import free_port
from tests.helm_chart.test_rendering import ALL, LEAST, ROOT, helm, pods
from tests.until import until

from goodput_ingest.sources.kubernetes.api import KubernetesApi

pytestmark = pytest.mark.machine
BELOW = "/api/v1/namespaces/goodput"
LISTS = (f"{BELOW}/configmaps", f"{BELOW}/services", "/apis/apps/v1/deployments",
         "/apis/apps/v1/daemonsets", "/apis/networking.k8s.io/v1/ingresses",
         "/apis/networking.k8s.io/v1/networkpolicies",
         f"{BELOW}/persistentvolumeclaims")  # fmt: skip
VALUES = {one: ALL | {"serviceMonitor": {}, "volumes": [], "volumeMounts": [],
                      "collector": {"enabled": True, "hostPID": one}}
          for one in (False, True)}  # without what a bare server does not know  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Give a client of an API server with an etcd of its own, and Helm's options for it."""
    folder, host = tmp_path_factory.mktemp("cluster"), "127.0.0.1"
    stored, peers, port = (f"{host}:{free_port()}" for _ in range(3))
    url, key, tokens = f"https://{port}", f"{folder}/key", folder / "tokens"
    programs = {
        "openssl": ["genrsa", "-out", key],
        "etcd": [f"--data-dir={folder}/etcd", f"--listen-client-urls=http://{stored}",
                 f"--advertise-client-urls=http://{stored}", f"--listen-peer-urls=http://{peers}"],
        "kube-apiserver": [
            f"--etcd-servers=http://{stored}", f"--cert-dir={folder}", f"--bind-address={host}",
            f"--secure-port={port.partition(':')[2]}", f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/16", f"--service-account-issuer={url}",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"],
    }  # fmt: skip
    if missing := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    tokens.write_text("of-admin,admin,1,system:masters")
    with contextlib.ExitStack() as stack, (folder / "log").open("w") as log:
        for name, options in programs.items():
            process = subprocess.Popen([name, *options], stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            if name == "openssl":
                process.wait()
        headers, known = {"Authorization": "Bearer of-admin"}, folder / "apiserver.crt"
        until(lambda: "Serving securely" in (folder / "log").read_text(), "the API server answers")
        trusted = ssl.create_default_context(cafile=known)
        client = stack.enter_context(httpx.Client(base_url=url, headers=headers, verify=trusted))
        until(lambda: client.get("/readyz").is_success, "the API server is ready")
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        created(client, "/api/v1/namespaces", {"name": "goodput", "labels": labels})
        yield client, ["--kube-apiserver", url, "--kube-token", "of-admin", "--kube-ca-file",
                       str(known), "--namespace", "goodput"]  # fmt: skip


def created(client, path, metadata, **rest):
    """Create an object; return what the server made of it."""
    answer = client.post(path, json={"metadata": metadata, **rest})
    assert answer.is_success, answer.text
    return answer.json()


def counted(client):
    """Return how many objects of the release each list has."""
    selector = {"labelSelector": "app.kubernetes.io/instance=goodput"}
    return [len(client.get(path, params=selector).json()["items"]) for path in LISTS]


def test_a_release_is_installed_upgraded_and_removed_but_for_its_claim(server):
    client, options = server
    smaller = LEAST | {"persistence": ALL["persistence"]}  # a claim that is there cannot change
    for verb, values, counts in (("install", VALUES[True], [2, 1, 1, 1, 1, 1, 1]),
                                 ("upgrade", smaller, [1, 1, 1, 0, 0, 0, 1]),
                                 ("uninstall", None, [0, 0, 0, 0, 0, 0, 1])):  # fmt: skip
        chart = ["goodput", "."] if values else ["goodput"]

        done = helm(verb, *chart, *options, values=values)

        assert done.returncode == 0, done.stderr
        assert counted(client) == counts


def test_pods_are_admitted_at_the_level_restricted_unless_they_see_processes(server):
    client, _ = server
    answers = [
        client.post(f"{BELOW}/pods?dryRun=All", json={"metadata": {"name": "one"}, "spec": spec})
        for values in VALUES.values()
        for spec in pods(values)
    ]

    assert [answer.status_code for answer in answers] == [201, 201, 201, 403]
    assert "violates PodSecurity" in answers[3].text


def test_pods_and_jobs_are_read_with_the_rights_of_the_documentation(server, store, monkeypatch):
    client, options = server
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    given = (ROOT / "deploy/kubernetes/reader.yaml").read_text("utf-8")
    account, role, binding = yaml.safe_load_all(given)
    rights = "/apis/rbac.authorization.k8s.io/v1/clusterrole"
    created(client, accounts := "/api/v1/namespaces/default/serviceaccounts", **account)
    created(client, f"{rights}s", **role)
    created(client, f"{rights}bindings", **binding)
    token = client.post(f"{accounts}/goodput/token", json={})
    one = {"name": "one", "image": "train", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    spec = {"restartPolicy": "Never", "containers": [one], "nodeName": "gpu-1"}
    created(client, "/api/v1/namespaces", {"name": "nlp"})
    jobs, pods_of_it = "/apis/batch/v1/namespaces/nlp/jobs", "/api/v1/namespaces/nlp/pods"
    job = created(client, jobs, {"name": "llm"}, spec={"template": {"spec": spec}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "llm", "controller": True}
    owner["uid"] = job["metadata"]["uid"]
    pod = created(client, pods_of_it, {"name": "llm-0", "ownerReferences": [owner]}, spec=spec)
    now = datetime.now(UTC)
    began = {"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{now:%FT%TZ}"}
    pod["status"] = {"phase": "Running", "conditions": [began]}
    client.put(f"{pods_of_it}/llm-0/status", json=pod)
    monkeypatch.setenv("K8S_TOKEN", token.json()["status"]["token"])
    source = KubernetesApi(url=str(client.base_url), token_env="K8S_TOKEN", ca_file=options[5])

    found = list(source.poll({}, now.replace(tzinfo=None) + timedelta(seconds=5)))
    for batch in found:
        store.load(batch)

    assert source.probe() == []
    assert [reject for batch in found for reject in batch.rejects] == []
    runs = "select job_id, state, gpus, submit_at is not null from raw.job_runs"
    assert store.read(runs).rows() == [("nlp/llm", "RUNNING", 2, True)]
