"""How many polls after its evidence a finding is there: at most two."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.ingest.http_pages import send, serving

from goodput_ingest.live.config import collectors
from goodput_ingest.live.scheduler import Clock, Collection
from goodput_ingest.live.store_lease import Held

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
INTERVAL_S = 10
GPUS = 4  # of the node; the job has the first two
RANKS = 2
STEP_S, SLOW_STEP_S = 2.5, 5.0
HW_THERMAL = 0x40


@dataclass
class Node:
    """An exporter and a job on its first GPUs, at a clock that polls move on."""

    events: Path
    second: float = 0.0
    gone: set[int] = field(default_factory=set)
    xids: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, int] = field(default_factory=dict)
    steps: int = 0
    stepped_until_s: float = 5.0

    def page(self):
        """Return what the exporter prints."""
        lines = []
        for gpu in set(range(GPUS)) - self.gone:
            labels = f'gpu="{gpu}",UUID="GPU-{gpu}",modelName="NVIDIA H100",Hostname="n0"'
            values = {
                "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.9,
                "DCGM_FI_DEV_XID_ERRORS": self.xids.get(gpu, 0),
                "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": self.reasons.get(gpu, 0),
            }
            lines += [f"{name}{{{labels}}} {value}" for name, value in values.items()]
        return "\n".join(lines) + "\n"

    def work(self, step_s):
        """Do the steps until now, and save them."""
        with self.events.open("a") as out:
            while self.stepped_until_s + step_s <= self.second:
                self.steps += 1
                self.stepped_until_s += step_s
                self._say(out, "step", step=self.steps, dur_s=step_s)
            self._say(out, "ckpt.durable", step=self.steps)

    def _say(self, out, event, **more):
        ts = NOON.timestamp() + self.stepped_until_s
        for rank in range(RANKS):
            who = {"run_id": "7", "rank": rank, "local_rank": rank, "host": "n0"}
            line = json.dumps({"v": 1, "ts": ts, "event": event, **who, **more})
            print(line, file=out)


@pytest.fixture
def node(tmp_path):
    """Give the node, and where its exporter listens."""
    found = Node(tmp_path / "job.jsonl")
    with serving(lambda request: send(request, found.page())) as address:
        yield found, f"http://{address}/metrics"


@pytest.mark.machine
def test_findings_are_there_within_two_polls_of_their_evidence(whole_store, node, tmp_path):
    """An Xid and a throttled GPU in the first poll; a GPU that is silent, once it is twice."""
    site, url = node
    tables = [
        {"source": "dcgm", "urls": [url], "interval_s": INTERVAL_S},
        {"source": "job-events", "folder": str(tmp_path), "interval_s": INTERVAL_S},
    ]
    now = NOON.replace(tzinfo=None)
    clock = Clock(lambda: now + timedelta(seconds=site.second), lambda: site.second)
    collection = Collection(collectors(tables, cluster="lab"), Held(whole_store), clock)

    def poll(step_s):
        site.second += INTERVAL_S
        site.work(step_s)
        assert [outcome.error for outcome in collection.ask_once()] == [None, None]

    def found():
        whole_store.build()
        rows = whole_store.read(
            """select rule, gpu_uuid from marts.findings
            where is_open and rule in ('silent_gpu', 'gpu_error', 'throttled_gpu')"""
        )
        return set(rows.rows())

    for _ in range(4):
        poll(STEP_S)
    site.gone, site.xids, site.reasons = {3}, {2: 94}, {1: HW_THERMAL}

    poll(SLOW_STEP_S)
    assert found() == {("gpu_error", "GPU-2"), ("throttled_gpu", "GPU-1")}

    poll(SLOW_STEP_S)
    assert ("silent_gpu", "GPU-3") in found()
