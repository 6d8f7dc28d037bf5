"""PyTorch's out-of-memory error.

torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total capacity of 79.15 GiB ...

The line has no time: without a collector's label it gets the last time in the log
before it, and says so. The GPU's number is the process's own, not the machine's.
"""  # noqa: E501 -- the line as it is printed

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from goodput_ingest.sources.job_logs.events import Event
from goodput_ingest.sources.job_logs.lines import Line
from goodput_ingest.sources.job_logs.moments import Moments

OUT_OF_MEMORY = re.compile(
    r"(?:torch\.(?:cuda\.)?OutOfMemoryError|RuntimeError): (CUDA out of memory\. Tried to allocate "
    r"[\d.]{1,12} [KMGT]?i?B\b.{0,200})"
)


class CudaOom:
    """Failures for want of GPU memory."""

    name: ClassVar[str] = "cuda-oom"
    marks: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"(?:OutOfMemoryError|RuntimeError): CUDA out of memory"
    )
    hints: ClassVar[tuple[str, ...]] = ("CUDA out of memory",)
    reports_durability: ClassVar[bool] = True  # it does not exclude durable saves

    def __init__(self) -> None:
        """Keep nothing: each line stands for itself."""

    def take(self, line: Line, moments: Moments) -> Iterable[Event] | None:
        """Return the failure of a line."""
        found = OUT_OF_MEMORY.search(line.text)
        if found is None:
            return None
        extra: dict[str, Any] = {} if line.rank is None else {"rank": line.rank}
        if line.at is None:
            extra["at"] = "the last time before it"
        return (Event("failure", line.at or moments.last, kind="oom", msg=found[1], extra=extra),)
