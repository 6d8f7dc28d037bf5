"""Lines of no known format that look like a fact: named unless the log says the same elsewhere."""

from tests.ingest.job_log_lines import ITERATION, UTC
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.sources.job_logs.unread_lines import LISTED_MAX

STEP = ITERATION.format(second=1, step=1, ms=1000.0)
SAVE = "checkpointer: flushed snapshot of step {} in 3.2 s\n"
SAVED = "2026-08-20T14:03:05Z  successfully saved checkpoint from iteration 7 to /c\n"
LOOKS = "the line looks like {} and is of no known format"


@each({
    "a save": (SAVE.format(7), "a finished save"),
    "a save, the other way round": ("ckpt-7.pt was uploaded to s3://c\n", "a finished save"),
    "a restore": ("engine: resuming from step 100\n", "a restore"),
    "a failure": ("Fatal: fabric watchdog tripped on rank 7, leaving\n", "the failure of a job"),
    "a failure behind a time": ("14:03:05 trainer CRITICAL no peers\n", "the failure of a job"),
    "a setting": ("save_checkpoint_steps = 500, restore_from = none\n", None),
    "a file's name": ("config: /jobs/fatal_errors/snapshot.yaml\n", None),
    "a save that is read, too": (SAVE.format(7) + SAVED, None),
})  # fmt: skip
def test_a_line_that_looks_like_a_fact_is_rejected_where_nothing_says_the_same(
    store, tmp_path, line, looks_like
):
    log = tmp_path / "slurm-4711.out"
    log.write_text(STEP + line)

    ingest(store, "job-log", [log], UTC)

    found = store.read("select line, reason, content from raw.rejects").rows()
    expected = [] if looks_like is None else [(2, LOOKS.format(looks_like), line.rstrip("\n"))]
    assert found == expected


def test_of_many_lines_the_first_ones_are_named(store, tmp_path):
    log = tmp_path / "slurm-4711.out"
    log.write_text(STEP + "".join(map(SAVE.format, range(20))))

    ingest(store, "job-log", [log], UTC)

    lines = store.read("select line from raw.rejects order by line")["line"].to_list()
    assert lines == [*range(2, 2 + LISTED_MAX)]
