"""Real Megatron-LM logs of Jean Zay against the speeds that were published with them.

Published: bigscience-workshop/bigscience, experiments/gpt2.md ("Throughput").
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = reading(EXTERNAL)
LOGS = EXTERNAL / "megatron-jeanzay-a"
PARIS = ReadOptions(cluster="jean-zay", zone=ZoneInfo("Europe/Paris"))
PUBLISHED_S = {"1809562": 1.618, "1809577": 2.738, "1999618": 125.0}
STEPS = {"1809562": 200, "1809577": 90, "1999618": 4}
# a batch record each, as the scheduler would have it: begun a minute before, ended as the log says
SACCT = "Cluster,JobID,JobIDRaw,State,Submit,Start,End,NNodes,NodeList,AllocTRES,JobName"
RUNS = {
    "1809562": ("2021-05-23T08:23:00", "2021-05-23T08:29:53", 8),
    "1809577": ("2021-05-23T08:40:00", "2021-05-23T08:46:02", 16),
    "1999618": ("2021-05-27T21:32:30", "2021-05-27T21:52:36", 16),
}


@pytest.fixture(scope="module")
def store(module_store, tmp_path_factory):
    """Give the logs and their accounting, built."""
    made = module_store()
    ingest(made, "auto", [LOGS], PARIS)
    lines = [SACCT.replace(",", "\x1f")]
    for job, (start, end, nodes) in RUNS.items():
        state = "TIMEOUT" if job == "1999618" else "CANCELLED by 1"
        tres = f"gres/gpu={4 * nodes}"
        record = ["jean-zay", job, job, state, start, start, end, str(nodes), f"n[1-{nodes}]", tres]
        lines.append("\x1f".join([*record, "gpt2"]))
    accounting = tmp_path_factory.mktemp("accounting") / "sacct.txt"
    accounting.write_text("\n".join(lines) + "\n")
    ingest(made, "slurm", [accounting], PARIS)
    made.build()
    return made


def test_step_times_come_out_as_published(store):
    found = store.read(
        """select run_id, count(*), median(dur_s) from raw.job_events
        where event = 'step' group by all"""
    ).rows()
    assert {run: steps for run, steps, _ in found} == STEPS
    assert {run: s for run, _, s in found} == pytest.approx(PUBLISHED_S, rel=0.015)


def test_the_last_step_ends_before_the_scheduler_ended_the_job(store):
    """Iterations carry no moment: laid end to end, they must fit what does."""
    found = store.read(
        """select run_id, max(ts) filter (where event = 'step'),
            max(ts) filter (where event = 'job.end')
        from raw.job_events group by all order by all"""
    ).rows()
    # two hours behind Paris
    ends = {
        run: datetime.fromisoformat(end) - timedelta(hours=2) for run, (_, end, _) in RUNS.items()
    }
    assert {run: end for run, _, end in found} == ends
    for _, last_step, end in found:
        assert 0 < (end - last_step).total_seconds() < 125


def test_the_ledger_calls_all_steps_lost_since_nothing_was_saved(store):
    found = store.read(
        """select job_id, coalesce(sum(gpu_ms) filter (
                where category = 'failed_without_progress' and phase = 'lost_work'), 0)::bigint
            // 1000 // max(gpus) as lost_s
        from marts.ledger_scoped
        inner join (select job_id, gpus from raw.job_runs) using (job_id)
        group by job_id order by job_id"""
    ).rows()

    # the steps' lengths add up to these; the first one's excess over the next ten is start-up
    assert [job for job, _ in found] == sorted(RUNS)
    assert [s for _, s in found] == [
        pytest.approx(total_s, abs=2) for total_s in (340.4, 278.0, 494.0)
    ]
