"""What lines of torchtitan become: versions, a dtype, and no share of a quantised model."""

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
