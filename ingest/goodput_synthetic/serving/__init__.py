"""Made-up serving engines: a load of known requests, and what each engine's exporter says of it.

    load = serve(Engine("vllm", "llama-3.1-8b", "gpu-a01:8000"), arrivals(seed=1, ...))
    text = scrapes(load, from_ms, to_ms, step_ms=30_000)     # Prometheus text, by serving-metrics
    rows = request_log([load])                               # CSV of the same requests

The exporters speak the names of the real ones. The same arguments give the same bytes; times are
epoch milliseconds.
"""

from goodput_synthetic.serving.exporter import page, scrapes
from goodput_synthetic.serving.load import (
    Arrival,
    Engine,
    Life,
    Load,
    Request,
    arrivals,
    serve,
)
from goodput_synthetic.serving.request_log import request_log, request_log_lines

__all__ = [
    "Arrival",
    "Engine",
    "Life",
    "Load",
    "Request",
    "arrivals",
    "page",
    "request_log",
    "request_log_lines",
    "scrapes",
    "serve",
]
