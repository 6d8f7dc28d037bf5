"""How each product's exporter writes a state: its names, its labels and its buckets.

Written down a second time, and not taken from `reference.serving_metrics`: what reads the names is
tested against them. A series is (kind, name, what of the state, further labels).
"""

import csv
from importlib.resources import files
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


def _series() -> dict[tuple[str, str], list[Series]]:
    """Return the series of `series.csv` by product and release."""
    found: dict[tuple[str, str], list[Series]] = {}
    file = files("goodput_synthetic.serving") / "series.csv"
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        pairs = (pair.partition("=") for pair in row["labels"].split())
        labels = tuple((label, value) for label, _, value in pairs)
        of_release = found.setdefault((row["product"], row["version"]), [])
        of_release.append((row["kind"], row["name"], row["state"], labels))
    return found


SERIES: Final = _series()
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
