"""Tokens, samples, FLOPs and MFU that logs print."""

from tests.ingest.job_log_lines import parsed

TITAN = "[titan] 2026-08-20 14:{clock} - root - INFO - "


def amounts(store, folder, text):
    parsed(store, folder, text)
    return store.read(
        """select step, samples, gpu_tokens, gpu_flops, mfu_ratio from raw.job_events
        where event = 'step' order by step"""
    ).rows()


def test_a_quantised_model_of_torchtitan_has_no_mfu_and_says_so(whole_store, tmp_path):
    text = TITAN.format(clock="03:12,000") + "step: 401  loss:  6.4  tps: 8,214  mfu: N/A\n"

    assert amounts(whole_store, tmp_path, text)[0][4] is None
    assert whole_store.read("select dtype from staging.stg_job_models").item() == "quantised"
