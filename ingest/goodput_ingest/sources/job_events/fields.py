"""Events and fields of job events v1, as both readers take them and docs/job-events.md has them."""

from typing import Final

import polars as pl

from goodput_ingest.formats.json_text.event_lines import INT32_MAX, MSG_MAX_CHARS, SCHEMA
from goodput_ingest.formats.json_text.json_lines import INTEGER_MAX

VERSION: Final = 1
EVENTS: Final = (
    "job.start",
    "job.end",
    "step.start",
    "step",
    "phase",
    "phase.start",
    "phase.end",
    "ckpt.durable",
    "failure",
    "metric",
)
NEEDS: Final = {  # required fields of an event
    "step": "step",
    "step.start": "step",
    "ckpt.durable": "step",
    "phase": "phase",
    "phase.start": "phase",
    "phase.end": "phase",
}
REQUIRED: Final = {name: [NEEDS[name]] if name in NEEDS else [] for name in EVENTS}
REQUIRED["phase"] = ["phase", "dur_s"]
NAMED: Final = {*SCHEMA, "v"} - {"source", "cluster", "reports_durability", "extra"}
TEXTS: Final = {  # most characters
    "run_id": 200,
    "host": 255,
    "gpu_uuid": 100,
    "event": 50,
    "phase": 100,
    "kind": 100,
    "msg": MSG_MAX_CHARS,
}
WHOLES: Final = {  # greatest value
    "attempt": INT32_MAX,
    "rank": INT32_MAX,
    "local_rank": INT32_MAX,
    "pid": INTEGER_MAX,
    "step": INTEGER_MAX,
}
DURATIONS: Final = (
    *("dur_s", "data_s", "comm_s", "straggler_s", "throttle_s", "fwd_s", "bwd_s", "opt_s"),
)
AMOUNTS: Final = ("tokens", "flops", "samples", "gpu_tokens", "gpu_flops", "mfu_ratio")
FIELDS: Final[dict[str, pl.DataType]] = {
    "v": pl.Int64(),
    "ts": pl.Float64(),
    **dict.fromkeys(TEXTS, pl.String()),
    **dict.fromkeys(WHOLES, pl.Int64()),
    **dict.fromkeys((*DURATIONS, *AMOUNTS, "loss"), pl.Float64()),
}
