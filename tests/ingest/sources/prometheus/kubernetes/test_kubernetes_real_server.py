"""Kubernetes through a real Prometheus that scrapes kube-state-metrics and a GPU exporter."""

import time
from datetime import datetime, timedelta

import pytest
from tests.ingest.sources.prometheus.kubernetes.conftest import Cluster

from goodput_ingest.live.config import collectors
from goodput_ingest.live.scheduler import Collection
from goodput_ingest.live.store_lease import Held
from goodput_queries.check import check

pytestmark = pytest.mark.machine
NODE, GPUS = "gpu-a01", 4
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- naive UTC
HELD = """select job_id, gpu_uuid, gpu_instance, method, from_ms(holds.start_ms) as start_at,
        from_ms(holds.end_ms) as end_at
    from intermediate.int_holds as holds
    inner join intermediate.int_job_runs using (job_run_key)
    order by all"""


def uuid(gpu):
    return f"GPU-00000000-0000-4000-8000-{gpu:012x}"


def moment(seconds):
    return EPOCH + timedelta(milliseconds=round(seconds * 1000))


class Pods:
    """The pods on a node with four GPUs, as two exporters print them on one page."""

    def __init__(self, exporter):
        self.exporter = exporter
        self.pods = {}
        self.show()

    def start(self, name, gpus, job):
        """Bind a pod; return when, in epoch seconds."""
        self.pods[name] = {"gpus": gpus, "job": job, "start_s": round(time.time() - 1, 3)}
        self.show()
        return self.pods[name]["start_s"]

    def complete(self, name):
        """End a pod well; it stays to be seen. Return when, in epoch seconds."""
        self.pods[name]["end_s"] = round(time.time(), 3)
        self.show()
        return self.pods[name]["end_s"]

    def show(self):
        """Render the page again."""
        now_s = time.time() + 1  # after all times of pods, which are rounded
        shown = Cluster(until_s=0, start_s=now_s)
        shown.node(NODE, GPUS)
        shown.add("kube_node_status_condition", node=NODE, condition="Ready", status="true")
        owners = {gpu: [] for gpu in range(GPUS)}
        for name, pod in self.pods.items():
            begin_s, ended = pod["start_s"] - now_s, {}
            if "end_s" in pod:
                ended = {"ended_s": pod["end_s"] - now_s, "phase": "Succeeded"}
            times = {"created_s": begin_s, "bound_s": begin_s, **ended}
            shown.pod(name, NODE, gpus=len(pod["gpus"]), owner=("Job", pod["job"]), **times)
            for gpu in () if ended else pod["gpus"]:
                owners[gpu].append({"namespace": "nlp", "pod": name, "container": "main"})
        for gpu, pods in owners.items():
            named = {"gpu": gpu, "UUID": uuid(gpu), "Hostname": NODE}
            for pod in pods or [{}]:
                shown.add("DCGM_FI_DEV_GPU_UTIL", 97 if pod else 0, **named, **pod)
        self.exporter.text = shown.page()


@pytest.fixture
def seen(prometheus, exporter):
    """Wait until what the exporters print now was scraped a few times."""

    def more():
        goal = len(exporter.asked) + 4
        prometheus.until(lambda: len(exporter.asked) >= goal, "it scrapes again")

    return more


@pytest.fixture
def poll(whole_store, prometheus):
    """Poll both sources once, each time as a restarted process; return the errors."""
    common = {"url": prometheus.url, "settle_s": 0, "overlap_s": 60, "cluster": "k8s"}
    tables = [
        {"source": "kubernetes", "lookback_s": 600, **common},
        {"source": "prometheus", "backfill_s": 600, **common},
    ]

    def once():
        outcomes = Collection(collectors(tables), Held(whole_store)).ask_once()
        return [outcome.error for outcome in outcomes]

    return once


def held(store):
    store.build()
    assert check(store)["violations"].sum() == 0
    return store.read(HELD).rows()


def test_pods_hold_named_gpus_over_outages_of_both(whole_store, prometheus, exporter, seen, poll):
    pods = Pods(exporter)
    start_s = {
        "train-0": pods.start("train-0", [0, 1], "train"),
        "eval": pods.start("eval", [3], "eval"),
    }
    seen()
    assert poll() == [None, None]
    running = held(whole_store)

    prometheus.stop()
    end_s = pods.complete("train-0")
    assert all("no connection" in error for error in poll())
    prometheus.start()
    seen()
    assert poll() == [None, None]
    assert poll() == [None, None]

    begin = {name: moment(at) for name, at in start_s.items()}
    expected = [
        ("nlp/eval", uuid(3), "", "pod", begin["eval"], None),
        ("nlp/train", uuid(0), "", "pod", begin["train-0"], moment(end_s)),
        ("nlp/train", uuid(1), "", "pod", begin["train-0"], moment(end_s)),
    ]
    assert running == [(*row[:5], None) for row in expected]
    assert held(whole_store) == expected
    states = whole_store.read("select job_id, state from raw.job_runs order by all").rows()
    assert states == [("nlp/eval", "RUNNING"), ("nlp/train", "COMPLETED")]
