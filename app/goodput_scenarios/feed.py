"""Input of a run: what its GPUs need against what the store, local disks and memory give."""

from decimal import Decimal

from goodput_scenarios.scenario import scenario

FEED = scenario(
    "feed",
    "Input and storage",
    "What must storage give to feed these GPUs, and does the input fit on disks and in memory?",
    (lambda v: v.need_gb, "{gpus:0} x {feed_mb_per_gpu_s:1} / 1,000 = {it} GB/s"),
    (lambda v: v.need_gb / v.store_gb_per_s * 100, "{need_gb} / {store_gb_per_s} x 100 = {it} %"),
    (
        lambda v: v.store_gb_per_s * 1000 / v.feed_mb_per_gpu_s,
        "{store_gb_per_s} x 1,000 / {feed_mb_per_gpu_s:1} = {it:0}",
    ),
    (lambda v: v.shards_gb, "{dataset_gb} / {nodes} = {it}"),
    (lambda v: v.shards_gb / v.local_gb_per_s, "{shards_gb} / {local_gb_per_s} = {it:0} s"),
    (lambda v: v.dataset_gb / v.store_gb_per_s, "{dataset_gb} / {store_gb_per_s} = {it}"),
    (
        lambda v: v.loader_gb,
        "{gpus:0} / {nodes:0} x {workers_per_gpu:0} x {prefetch:0} x {batch_mb:0} / 1,000 = {it} "
        "GB",
    ),
    (lambda v: v.loader_gb / v.memory_gb * 100, "{loader_gb} / {memory_gb} x 100 = {it} %"),
    (
        lambda v: (1 - v.real_per_s / v.synthetic_per_s) * 100,
        "(1 - {real_per_s} / {synthetic_per_s}) x 100 = {it} %",
    ),
    (
        lambda v: (v.synthetic_per_s / v.real_per_s * Decimal("0.85")).at_least(Decimal(1)),
        "0.85 x {synthetic_per_s} / {real_per_s} = {it:3} x",
    ),
    (
        lambda v: (v.synthetic_per_s / v.real_per_s * Decimal("0.95")).at_least(Decimal(1)),
        "0.95 x {synthetic_per_s} / {real_per_s} = {it:3} x",
    ),
    parts={
        "need_gb": lambda v: v.gpus * v.feed_mb_per_gpu_s / 1000,
        "shards_gb": lambda v: v.dataset_gb / v.nodes,
        "loader_gb": lambda v: (
            v.gpus / v.nodes * (v.workers_per_gpu * v.prefetch) * v.batch_mb / 1000
        ),
    },
)
