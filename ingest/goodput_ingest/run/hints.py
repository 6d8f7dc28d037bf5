"""Files that people have and no source reads: what they are and what would be read instead."""

import re
from typing import Final

from goodput_ingest.formats import syslog
from goodput_ingest.sources.job_logs.formats import looks_like_step

EVENTS: Final = "job events are read (goodput_emitter.py, see docs/job-events.md)"
KNOWN: Final = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (
            rb"\butilization\.gpu \[%\]|\bpower\.draw(?:\.\w+)? \[W\]|\A# gpu +(?:sm|pwr|pid)\b",
            "a table of nvidia-smi is not read: it names neither time zone nor node. Readings of "
            '`[[collect]] source = "nvml"`, of dcgm-exporter or of nvidia_gpu_exporter are',
        ),
        (
            rb'"current_steps": ?\d+, "total_steps": ?\d+',
            "trainer_log.jsonl of LLaMA-Factory is not read. The output of its Trainer is, with a "
            "time before each line (source job-log), and hf_callback() of goodput_emitter.py",
        ),
    )
)


def hint_of(head: bytes) -> str:
    """Return what would be read instead of a file, by its first bytes; empty: nothing is known."""
    for pattern, sentence in KNOWN:
        if pattern.search(head):
            return f"{sentence}."
    if b"\x00" in head:
        return ""
    for number, line in enumerate(head.decode("utf-8", "replace").splitlines(), 1):
        if looks_like_step(line):
            shown = line.strip()[: syslog.HEAD_LINE_MAX_CHARS // 5]
            return (
                f"line {number} ({shown}) looks like a training step of no known format; "
                "`goodput profile draft` proposes a profile for such lines."
            )
    return ""
