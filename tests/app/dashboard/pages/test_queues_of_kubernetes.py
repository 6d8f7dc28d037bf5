"""The Runs page on queues of Kueue: who waits and why, and the quota of each queue."""

import json

import pytest
from tests.app.opened_page import HOSTILE, table, texts
from tests.ingest.golden_cases import golden_path

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

LISTED = golden_path("kubernetes/workloads_and_queues_of_kueue/input.json")
PODS = golden_path("kubernetes/pods_with_claims_and_shares/input.json")


@pytest.fixture(scope="module")
def page(made, visit, tmp_path_factory):
    text = LISTED.read_text().replace("Deactivated", "x").replace('"research"', json.dumps(HOSTILE))
    path = tmp_path_factory.mktemp("listed") / "kueue.json"
    path.write_text(text.replace("deactivated", json.dumps(HOSTILE)[1:-1]))
    ingest(made.store, "auto", [path, PODS], ReadOptions(cluster="c"))
    made.store.build()
    return visit(made.store, "all_runs")


def test_jobs_that_wait_are_shown_with_queue_and_reason(page):
    rows = table(page, "wait_s", "reason", "message")
    rows = {row["job_name"]: row for row in rows.iter_rows(named=True)}

    assert rows["big"]["reason"] == "ExceedsMaxQuota"
    assert rows["off"]["message"] == rows["off"]["queue"] == HOSTILE
    assert rows["evicted"]["eviction_reason"].startswith("Preempted: Preempted to accommodate")
    # pods of llm are known, and have started
    assert "5 jobs waiting at the end of the time range." in texts(page)


def test_quotas_stand_beside_what_waits_for_them(page):
    rows = table(page, "quota_gpus", "used_gpus")
    rows = {(row["queue"], row["flavor"]): row for row in rows.iter_rows(named=True)}
    assert rows[("gpu", "h100")]["quota_gpus"] == 16
    assert rows[("stopped", "h100")]["state"] == "Stopped"
