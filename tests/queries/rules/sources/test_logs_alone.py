"""A job's log and the name of its node: a ledger without scheduler, job events or telemetry."""

from pathlib import Path

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

LOG = """\
2026-08-20T14:00:00Z loading data
2026-08-20T14:00:10Z step 1/300 loss 3.0
2026-08-20T14:00:20Z step 2/300 loss 2.9
2026-08-20T14:00:20Z Saving checkpoint
2026-08-20T14:00:25Z Saved checkpoint to /ckpt/2.pt
2026-08-20T14:00:35Z step 3/300 loss 2.8
2026-08-20T14:00:36Z training finished
"""


def test_the_log_of_a_plain_loop_is_a_run_of_its_node(store, tmp_path):
    log = Path(tmp_path, "mine.log")
    log.write_text(LOG)

    ingest(store, "auto", [log], ReadOptions(node="gpu01"))
    store.build()

    found = store.read("select category, gpu_ms from marts.ledger_by_category where gpu_ms > 0")
    assert dict(found.rows()) == {
        "step_unsplit": 20_000,
        "checkpoint_save": 5_000,
        "teardown": 1_000,
    }
    run = store.read("select run_name, gpus, state from marts.runs").row(0)
    assert run == ("mine", 1, "COMPLETED")
