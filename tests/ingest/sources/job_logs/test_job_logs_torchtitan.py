"""What lines of torchtitan become: versions, a dtype, and no share of a quantised model."""

import json

from tests.ingest.job_log_lines import parsed

TITAN = "[titan] 2026-08-20 14:{clock} - root - INFO - "


def test_versions_that_nccl_prints_go_with_the_next_event(whole_store, tmp_path):
    text = (
        "gpu7:311:311 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
        + TITAN.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214\n"
        + TITAN.format(clock="03:14,000") + "step: 402  loss:  6.41230  tps: 8,214\n"
    )  # fmt: skip

    parsed(whole_store, tmp_path, text)

    found = whole_store.read("select attribute, value from staging.stg_run_attributes order by all")
    assert found.rows() == [("cuda_version", "13.0"), ("nccl_version", "2.28.9")]


def test_a_quantised_model_has_no_mfu_and_says_so(whole_store, tmp_path):
    text = TITAN.format(clock="03:12,000") + "step: 401  loss:  6.4  tps: 8,214  mfu: N/A\n"
    parsed(whole_store, tmp_path, text)

    assert whole_store.read("select mfu_ratio from raw.job_events").item() is None
    assert whole_store.read("select dtype from staging.stg_job_models").item() == "quantised"


T0_US = 1_787_234_400_000_000


def line(name, at_ms, **fields):
    said = {"global_rank": 8, "local_rank": 0, "host_name": "node002", "pid": 4211, "step": 401}
    return json.dumps({**said, "log_type_name": name, "time_us": T0_US + at_ms * 1000, **fields})


FILE = "run7/structured_logs/training.global_rank_8.jsonl"


def test_a_file_that_is_said_to_be_one_is_read_among_other_lines(read_text):
    """`auto` leaves it to others; who names the source knows what the file is."""
    text = f"warning\nwarning\n{line('structured_logger_started', 0)}\nwarning\n"

    summary = read_text("torchtitan-structured", text, FILE)

    assert (summary.rows, summary.rejects) == (1, 3)


def test_what_a_person_says_of_the_run_beats_the_folder(store, read_text):
    read_text("auto", line("step_end", 1000, value=1000.0), FILE, run_id="4711")

    assert store.read("select run_id from raw.job_events").item() == "4711"
