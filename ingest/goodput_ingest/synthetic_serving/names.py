"""How each product's exporter writes a state: its names, its labels and its buckets.

Written down a second time, and not taken from `reference.serving_metrics`: what reads the names is
tested against them. A series is (kind, name, what of the state, further labels).
"""

from typing import Final

Series = tuple[str, str, str, tuple[tuple[str, str], ...]]

TO_FIRST_TOKEN: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
BETWEEN_TOKENS: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
OF_REQUESTS: Final = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0),
    *(240.0, 480.0, 960.0, 1920.0, 7680.0),
)
BUCKETS: Final = {
    "ttft_s": TO_FIRST_TOKEN,
    "inter_token_s": BETWEEN_TOKENS,
    "mean_inter_token_s": BETWEEN_TOKENS,
}


def _vllm(cache: str, between_tokens: str, prefix: str) -> tuple[Series, ...]:
    reasons = (("stop", "requests_ok"), ("length", "none"), ("abort", "requests_aborted"))
    return (
        ("gauge", "vllm:num_requests_running", "requests_running", ()),
        ("gauge", "vllm:num_requests_waiting", "requests_waiting", ()),
        ("gauge", cache, "kv_cache_ratio", ()),
        ("gauge", "vllm:engine_sleep_state", "one", (("sleep_state", "awake"),)),
        ("gauge", "vllm:engine_sleep_state", "none", (("sleep_state", "discard_all"),)),
        ("counter", f"vllm:{prefix}prefix_cache_queries_total", "prefix_cache_queries", ()),
        ("counter", f"vllm:{prefix}prefix_cache_hits_total", "prefix_cache_hits", ()),
        ("counter", "vllm:num_preemptions_total", "none", ()),
        ("counter", "vllm:prompt_tokens_total", "prompt_tokens", ()),
        ("counter", "vllm:generation_tokens_total", "generation_tokens", ()),
        *(
            ("counter", "vllm:request_success_total", of, (("finished_reason", reason),))
            for reason, of in reasons
        ),
        ("histogram", "vllm:time_to_first_token_seconds", "ttft_s", ()),
        ("histogram", between_tokens, "inter_token_s", ()),
        ("histogram", "vllm:e2e_request_latency_seconds", "e2e_s", ()),
        ("histogram", "vllm:request_queue_time_seconds", "queue_s", ()),
        ("histogram", "vllm:request_prefill_time_seconds", "prefill_s", ()),
        ("histogram", "vllm:request_decode_time_seconds", "decode_s", ()),
    )


SERIES: Final[dict[tuple[str, str], tuple[Series, ...]]] = {
    ("vllm", "current"): _vllm(
        "vllm:kv_cache_usage_perc", "vllm:inter_token_latency_seconds", prefix=""
    ),
    ("vllm", "earlier"): _vllm(
        "vllm:gpu_cache_usage_perc", "vllm:time_per_output_token_seconds", prefix="gpu_"
    ),
    ("sglang", "current"): (
        ("gauge", "sglang:num_running_reqs", "requests_running", ()),
        ("gauge", "sglang:num_queue_reqs", "requests_waiting", ()),
        ("gauge", "sglang:token_usage", "kv_cache_ratio", ()),
        ("counter", "sglang:prompt_tokens_total", "prompt_tokens_finished", ()),
        ("counter", "sglang:generation_tokens_total", "generation_tokens_finished", ()),
        ("counter", "sglang:cached_tokens_total", "cached_tokens_finished",
         (("cache_source", "device"),)),
        ("counter", "sglang:num_requests_total", "requests_over", ()),
        ("counter", "sglang:num_aborted_requests_total", "requests_aborted", ()),
        ("histogram", "sglang:time_to_first_token_seconds", "ttft_s", ()),
        ("histogram", "sglang:inter_token_latency_seconds", "inter_token_s", ()),
        ("histogram", "sglang:e2e_request_latency_seconds", "e2e_s", ()),
        ("histogram", "sglang:queue_time_seconds", "queue_s", ()),
    ),
    ("tensorrt-llm", "current"): (
        ("gauge", "trtllm_num_requests_running", "requests_running", ()),
        ("gauge", "trtllm_num_requests_waiting", "requests_waiting", ()),
        ("gauge", "trtllm_kv_cache_utilization", "kv_cache_ratio", ()),
        ("counter", "trtllm_prompt_tokens_total", "prompt_tokens_finished", ()),
        ("counter", "trtllm_generation_tokens_total", "generation_tokens_finished", ()),
        ("counter", "trtllm_prompt_cached_tokens_total", "cached_tokens_finished", ()),
        ("counter", "trtllm_request_success_total", "requests_ok",
         (("finished_reason", "stop"),)),
        ("counter", "trtllm_request_error_total", "requests_aborted", (("http_code", "499"),)),
        ("histogram", "trtllm_time_to_first_token_seconds", "ttft_s", ()),
        ("histogram", "trtllm_time_per_output_token_seconds", "mean_inter_token_s", ()),
        ("histogram", "trtllm_e2e_request_latency_seconds", "e2e_s", ()),
        ("histogram", "trtllm_request_queue_time_seconds", "queue_s", ()),
        ("histogram", "trtllm_request_prefill_time_seconds", "prefill_s", ()),
        ("histogram", "trtllm_request_decode_time_seconds", "decode_s", ()),
    ),
    ("triton", "current"): (
        ("counter", "nv_inference_request_success", "requests_ok", (("version", "1"),)),
        ("counter", "nv_inference_request_failure", "requests_aborted",
         (("version", "1"), ("reason", "CANCELED"))),
        ("gauge", "nv_trt_llm_request_metrics", "requests_running",
         (("request_type", "scheduled"), ("version", "1"))),
        ("gauge", "nv_trt_llm_request_metrics", "requests_waiting",
         (("request_type", "waiting"), ("version", "1"))),
        ("gauge", "nv_trt_llm_kv_cache_block_metrics", "kv_cache_ratio",
         (("kv_cache_block_type", "fraction"), ("version", "1"))),
    ),
    ("tgi", "current"): (
        ("gauge", "tgi_batch_current_size", "requests_running", ()),
        ("gauge", "tgi_queue_size", "requests_waiting", ()),
        ("counter", "tgi_request_success", "requests_ok", ()),
        ("counter", "tgi_request_failure", "requests_aborted", (("err", "dropped"),)),
        ("sum", "tgi_request_input_length", "prompt_tokens_finished", ()),
        ("sum", "tgi_request_generated_tokens", "generation_tokens_finished", ()),
        ("histogram", "tgi_request_duration", "e2e_s", ()),
        ("histogram", "tgi_request_queue_duration", "queue_s", ()),
        ("histogram", "tgi_request_mean_time_per_token_duration", "mean_inter_token_s", ()),
    ),
    ("dynamo", "current"): (
        ("gauge", "dynamo_frontend_inflight_requests", "requests_inflight", ()),
        ("gauge", "dynamo_frontend_queued_requests", "requests_waiting", ()),
        ("counter", "dynamo_frontend_requests_total", "requests_ok",
         (("endpoint", "chat_completions"), ("request_type", "stream"), ("status", "success"))),
        ("counter", "dynamo_frontend_requests_total", "requests_aborted",
         (("endpoint", "chat_completions"), ("request_type", "stream"), ("status", "error"))),
        ("counter", "dynamo_frontend_output_tokens_total", "generation_tokens", ()),
        ("sum", "dynamo_frontend_input_sequence_tokens", "prompt_tokens", ()),
        ("sum", "dynamo_frontend_cached_tokens", "cached_tokens_finished", ()),
        ("histogram", "dynamo_frontend_time_to_first_token_seconds", "ttft_s", ()),
        ("histogram", "dynamo_frontend_inter_token_latency_seconds", "inter_token_s", ()),
        ("histogram", "dynamo_frontend_request_duration_seconds", "e2e_s", ()),
    ),
    ("inference-gateway", "current"): (
        ("gauge", "inference_objective_running_requests", "requests_inflight", ()),
        ("counter", "inference_objective_request_error_total", "requests_aborted",
         (("error_code", "ClientClosedRequest"),)),
        ("sum", "inference_objective_input_tokens", "prompt_tokens_finished", ()),
        ("sum", "inference_objective_output_tokens", "generation_tokens_finished", ()),
        ("histogram", "inference_objective_request_duration_seconds", "e2e_s", ()),
        ("histogram", "inference_objective_request_ttft_seconds", "ttft_s", ()),
        ("histogram", "inference_objective_request_tpot_seconds", "mean_inter_token_s", ()),
    ),
}  # fmt: skip
LABELS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "vllm": (("engine", "0"), ("model_name", "{model}")),
    "sglang": (
        ("engine_type", "unified"), ("model_name", "{model}"), ("pp_rank", "0"), ("tp_rank", "0"),
    ),
    "tensorrt-llm": (("engine_type", "trtllm"), ("model_name", "{model}")),
    "triton": (("model", "{model}"),),
    "tgi": (),
    "dynamo": (("model", "{model}"),),
    "inference-gateway": (("model_name", "{model}"), ("target_model_name", "{model}")),
}  # fmt: skip
