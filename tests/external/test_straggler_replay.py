"""A public trace of a job with stragglers: the published slowdown, its parts and its cause.

The figures are those of `result-SE.json`, `ms-SE.json` and `mw-SE.json` of ByteDance's
StragglerAnalysis; the cause (sequence lengths of micro-batches) is that of its readme.
"""

import json

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = reading(EXTERNAL)
FOLDER = EXTERNAL / "bytedance-straggler-se"
PER_CENT = 0.01
# a job record that names the run: the trace has no time of day
SACCT = """JobIDRaw|JobName|Account|User|Partition|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|NNodes|NCPUS|AllocTRES|NodeList
7001|pretrain|research|u|gpu|COMPLETED|0:0|1795175000|1795175000|1795175000|1795178600|3600|1|64|billing=64,cpu=64,gres/gpu=8,node=1|n1
"""  # noqa: E501


@pytest.fixture(scope="module")
def store(module_store, tmp_path_factory):
    made = module_store()
    jobs = tmp_path_factory.mktemp("jobs") / "sacct.txt"
    jobs.write_text(SACCT)
    options = ReadOptions(cluster="c", run_id="7001")
    summary = ingest(made, "auto", [FOLDER / "trace-SE.parquet", jobs], options)
    assert (summary.rejects, summary.unrecognised) == (0, [])
    made.build()
    return made


@pytest.fixture(scope="module")
def published():
    return dict(json.loads((FOLDER / "result-SE.json").read_text()))


def test_the_slowdown_is_the_published_one(store, published):
    found = store.read("select * from marts.pipeline_replays").row(0, named=True)

    assert found["slowdown_ratio"] == pytest.approx(published["blocking_slowdown"], rel=PER_CENT)
    assert found["ideal_s"] == pytest.approx(published["step_t_noblk"]["16"], rel=PER_CENT)
    recorded = list(published["step_t_base"].values())
    assert found["recorded_s"] == pytest.approx(sum(recorded) / len(recorded), rel=PER_CENT)


def test_each_step_and_kind_of_operation_is_as_published(store, published):
    rows = store.read("select * from staging.stg_replayed_parts").rows(named=True)
    ideal = published["step_t_noblk"]["16"]

    steps = {str(row["step"]): row["step_s"] for row in rows if row["part"] == "step"}
    assert steps == pytest.approx(published["step_t_nodelay"], rel=PER_CENT)
    kinds = {row["operation"]: row["step_s"] / ideal for row in rows if row["part"] == "operation"}
    for kind in ("forward-compute", "backward-compute", "embedding-grads-all-reduce"):
        expected = published["blocking_decompose_by_optype"][kind]
        assert kinds[kind] == pytest.approx(expected, rel=PER_CENT)
    stages = {str(row["stage"]): row["step_s"] / ideal for row in rows if row["part"] == "stage"}
    assert stages == pytest.approx(published["blocking_decompose_by_stage"], rel=PER_CENT)


def test_the_cause_is_uneven_micro_batches_and_neither_workers_nor_stages(store):
    found = store.read("select * from marts.pipeline_replays").row(0, named=True)

    assert found["cause"] == "micro_batch"
    assert "sequence lengths" in found["sentence"]
    assert found["slowest_stage"] == 1
    assert found["slowest_stage_share"] == pytest.approx(0.6877, abs=PER_CENT)
    assert found["slowest_workers_share"] == pytest.approx(0.0251, abs=PER_CENT)
    parts = ("stage_s", "worker_s", "micro_batch_s", "communication_s", "delay_s")
    total = sum(found[part] for part in parts)
    assert total == pytest.approx(found["recorded_s"] - found["ideal_s"])


def test_the_finding_names_slowdown_and_cause_and_timelines_are_as_long_as_the_step(store):
    of_rule = "from marts.findings where rule = 'uneven_workers'"
    ((run_key, evidence),) = store.read(f"select run_key, evidence {of_rule}").rows()

    assert run_key == "c/7001"
    assert evidence.startswith("1.55 times the ideal step (9.11 s for 5.90 s)")
    assert "uneven micro-batches" in evidence
    ends = "max(end_s), max(ideal_end_s), count(distinct stage)"
    found = store.read(f"select {ends} from marts.pipeline_timeline").row(0)
    assert found == pytest.approx((9.04, 5.897, 2), rel=PER_CENT)
