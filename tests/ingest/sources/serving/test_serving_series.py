"""Series of serving engines one by one: names, labels, and what is not a reading."""

import polars as pl
import pytest

from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.serving_metrics import ALL_LABELS, Identity, serving_rows
from goodput_queries.catalog import models

CANONICAL = {
    *("prompt_tokens", "generation_tokens", "requests_finished", "requests_failed", "preemptions"),
    *("prefix_cache_queries", "prefix_cache_hits", "kv_offload_bytes", "kv_transfer_bytes"),
    *("kv_load_s", "kv_transfer_s", "model_load_s", "requests_running", "requests_waiting"),
    "kv_cache_ratio",
    *("batch_size", "engine_asleep", "ttft_s", "inter_token_s", "e2e_s", "queue_s", "prefill_s"),
    "decode_s",
}


def parsed(text, target="http://gpu-a01:8000/metrics", **given):
    lines = f"# scraped_at 2026-11-24T12:00:00Z {target}\n{text}"
    found = exposition.parse(lines.encode(), KnownSeries(ALL_LABELS))
    return serving_rows(found.points, found.series, found.label_sets, given=Identity(**given))


def values(text):
    return {
        row["metric"]: row["value"]
        for one in parsed(text)
        if one.table == "serving_samples"
        for row in one.rows.to_dicts()
    }


def place(text, **given):
    return parsed(text, **given)[0].rows.row(0, named=True)


def test_the_reference_table_is_whole():
    rows = pl.read_csv(models.reference_files()["serving_metrics"])

    assert set(rows["canonical"]) == CANONICAL
    assert rows.filter(pl.col("source").is_null() | (pl.col("source") == "")).is_empty()
    assert (
        rows.select(pl.struct("product", "name", "canonical").is_duplicated().any()).item() is False
    )
    kinds = dict(rows.select("canonical", "kind").unique().rows())
    assert rows.select("canonical", "kind").n_unique() == len(kinds)


PAGE = (
    'vllm:num_requests_running{engine="0"} 3\nvllm:generation_tokens_total{engine="0"} 90\n'
    'vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 7\n'
)
DYNAMO = 'dynamo_component_inflight_requests{dynamo_endpoint="generate",model="m"} 4\n'
# what a page has; the readings of it
VALUES = {
    "of a renamed metric under both names the new one": (
        'vllm:gpu_cache_usage_perc{engine="0"} 0.5\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n'
        'vllm:kv_offload_total_bytes_total{transfer_type="CPU_to_GPU"} 40\n'
        'vllm:kv_offload_total_bytes_total{transfer_type="GPU_to_CPU"} 2\n'
        "vllm:kv_offload_load_bytes_total 40\nvllm:kv_offload_store_bytes_total 2\n"
        'vllm:kv_offload_total_time_total{transfer_type="CPU_to_GPU"} 3\n'
        'vllm:kv_offload_total_time_total{transfer_type="GPU_to_CPU"} 13\n',
        {"kv_cache_ratio": 0.25, "kv_offload_bytes": 42, "kv_load_s": 3},
    ),
    "of a metric under both spellings one": (
        PAGE + PAGE.replace(":", "_"), {"requests_running": 3, "generation_tokens": 90},
    ),
    "of ranks with the same requests one": (
        'sglang:num_running_reqs{tp_rank="0",dp_rank="1"} 3\n'
        'sglang:num_running_reqs{tp_rank="1",dp_rank="1"} 3\n',
        {"requests_running": 3},
    ),
    "base units": (
        "sglang:kv_transfer_total_mb_sum 2\nsglang:kv_transfer_latency_ms_sum 1500\n",
        {"kv_transfer_bytes": 2 * 1024 * 1024, "kv_transfer_s": 1.5},
    ),
    "an unknown metric of an engine by its name and labels": (
        'vllm:brand_new{engine="0",model_name="m",reason="x"} 7\nvllm:brand_new_created 1\n'
        "process_cpu_seconds_total 9\n",
        {'vllm:brand_new{reason="x"}': 7},
    ),
    "of an unknown histogram sum and count": (
        'vllm:request_prompt_tokens_bucket{le="+Inf"} 4\nvllm:request_prompt_tokens_sum 90\n'
        "vllm:request_prompt_tokens_count 4\n",
        {"vllm:request_prompt_tokens_sum": 90, "vllm:request_prompt_tokens_count": 4},
    ),
    "of a worker of Dynamo what its vLLM does not count": (
        f'vllm:num_requests_running{{engine="0",model_name="m"}} 3\n{DYNAMO}',
        {
            "requests_running": 3,
            'dynamo_component_inflight_requests{dynamo_endpoint="generate"}': 4,
        },
    ),
    "of a worker of Dynamo alone its requests": (DYNAMO, {"requests_running": 4}),
    "nothing of what is no number": (
        "vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\n", {"requests_waiting": 0},
    ),
    "labels that are called as our columns": (
        'vllm:other{metric="a",series="b",labels="c",value="d"} 1\n',
        {'vllm:other{labels="c",metric="a",series="b",value="d"}': 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), VALUES.values(), ids=VALUES)
def test_readings_of_a_page(text, expected):
    assert values(text) == expected


def test_a_colon_that_became_an_underscore_changes_nothing():
    """Prometheus stores the names of OpenMetrics without colons."""
    for page in (PAGE, 'sglang:num_running_reqs{tp_rank="0"} 3\n'):
        of_colons, of_underscores = parsed(page), parsed(page.replace(":", "_"))

        assert [one.table for one in of_underscores] == [one.table for one in of_colons]
        for one, other in zip(of_colons, of_underscores, strict=True):
            assert (
                one.rows.drop("native", strict=False).rows()
                == other.rows.drop("native", strict=False).rows()
            )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ('engine="1",model_name="m"', {
            "endpoint": "gpu-a01:8000", "node": "gpu-a01", "pod": None, "engine": "1", "model": "m",
        }),
        ('instance="10.0.0.7:8000",namespace="llm",pod="chat-0",node="gpu-a02"', {
            "endpoint": "llm/chat-0:8000", "node": "gpu-a02", "pod": "chat-0", "namespace": "llm",
        }),
        ('instance="10.0.0.7:8000"', {"endpoint": "10.0.0.7:8000", "node": None, "engine": ""}),
        ('pid="41",gpu="GPU-1, GPU-2",llm_d_ai_role="Prefill"', {
            "pid": 41, "gpu_labels": ["GPU-1", "GPU-2"], "role": "prefill",
        }),
        ('role="worker",engine_type="decode"', {"role": "decode"}),
    ],
)  # fmt: skip
def test_labels_say_which_engine_it_is(labels, expected):
    found = place(f"vllm:num_requests_running{{{labels}}} 1\n")

    assert {name: found[name] for name in expected} == expected


def test_what_a_person_says_of_an_engine_holds_where_no_label_does():
    found = place(
        'vllm:num_requests_running{instance="10.0.0.7:8000"} 1\n',
        node="gpu-a03", gpus=("0", "1"), role="decode",
    )  # fmt: skip

    assert found["node"] == "gpu-a03"
    assert found["gpu_labels"] == ["0", "1"]
    assert found["role"] == "decode"


def test_series_of_no_endpoint_are_rejected():
    [found] = parsed("vllm:num_requests_running 1\n", target="")

    assert found.rows.is_empty()
    assert "which endpoint" in found.rejects[0].reason


def test_engines_under_ray_are_told_apart_by_their_replica():
    """Ray renames the metrics of vLLM and has all engines of a node on one page."""
    ray = 'Component="core_worker",Version="2.48.0",WorkerId="{0}w",ReplicaId="{1}",engine="0"'
    lines = [
        f'ray_vllm_{name}{{{ray.format(worker, replica)},model_name="m"}} {value}'
        for worker, replica in (("a", "llm#x"), ("b", ""))
        for name, value in (
            ("num_requests_running", 3),
            ("generation_tokens_total", 70),
            ("generation_tokens", 70),
        )
    ]
    (found,) = parsed("\n".join(lines))

    assert found.rows.select("engine", "metric", "value", "product").rows() == [
        ("bw/0", "generation_tokens", 70.0, "vllm"), ("bw/0", "requests_running", 3.0, "vllm"),
        ("llm#x/0", "generation_tokens", 70.0, "vllm"),
        ("llm#x/0", "requests_running", 3.0, "vllm"),
    ]  # fmt: skip
    buckets = (
        f"ray_vllm_time_to_first_token_seconds_{end}{{{ray.format('a', '')}{le}}} 2"
        for end, le in (
            ("bucket", ',le="0.5"'),
            ("bucket", ',le="+Inf"'),
            ("sum", ""),
            ("count", ""),
        )
    )
    (histogram,) = parsed("\n".join(buckets))
    assert histogram.table == "serving_histograms"
    assert histogram.rows["metric"].unique().to_list() == ["ttft_s"]
