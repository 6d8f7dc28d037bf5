"""Evidence of serving engines as it is stored and read."""

import math

ENGINE = {
    "cluster": "lab", "endpoint": "llm/chat-0", "pod": "chat-0", "namespace": "llm",
    "engine": "0", "model": "m", "role": "both", "product": "vllm",
}  # fmt: skip


def test_a_bucket_of_infinity_is_stored_once(evidence):
    bucket = {**ENGINE, "metric": "ttft_s", "ts": evidence.at(0), "le_s": math.inf}

    evidence.load("serving_histograms", [{**bucket, "observations": 3}])
    evidence.load("serving_histograms", [{**bucket, "observations": 99}])

    found = evidence.store.read("select observations from staging.stg_serving_histograms")
    assert found["observations"].to_list() == [3]


def test_the_row_with_the_later_end_wins(evidence):
    request = {"cluster": "lab", "endpoint": "e", "request_id": "r", "model": "m"}
    arrival = {"arrival_at": evidence.at(0)}
    evidence.load("serving_requests", [{**request, **arrival, "output_tokens": 1}])

    evidence.load("serving_requests", [
        {**request, **arrival, "output_tokens": 9, "end_at": evidence.at(4)}
    ])  # fmt: skip

    rows = evidence.store.read(
        "select end_ms - arrival_ms as ms, output_tokens from staging.stg_serving_requests"
    )
    assert rows.rows() == [(4000, 9)]
