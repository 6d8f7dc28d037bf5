"""torchtitan's structured log: one rank's JSON lines."""

import json

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

T0_US = 1_787_234_400_000_000


def line(name, at_ms, **fields):
    said = {"global_rank": 8, "local_rank": 0, "host_name": "node002", "pid": 4211, "step": 401}
    return json.dumps({**said, "log_type_name": name, "time_us": T0_US + at_ms * 1000, **fields})


def write(folder, *lines):
    path = folder / "run7" / "structured_logs" / "training.global_rank_8.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in lines))
    return path


def test_a_file_that_is_said_to_be_one_is_read_among_other_lines(store, tmp_path):
    """`auto` leaves it to others; who names the source knows what the file is."""
    path = write(tmp_path, "warning", "warning", line("structured_logger_started", 0), "warning")

    summary = ingest(store, "torchtitan-structured", [path], ReadOptions())

    assert (summary.rows, summary.rejects) == (1, 3)


def test_what_a_person_says_of_the_run_beats_the_folder(store, tmp_path):
    path = write(tmp_path, line("step_end", 1000, value=1000.0))

    ingest(store, "auto", [path], ReadOptions(run_id="4711"))

    assert store.read("select run_id from raw.job_events").item() == "4711"
