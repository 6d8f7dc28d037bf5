"""A recording of NVML: JSON lines as `python -m goodput_ingest.sources.nvml` writes them on a node.

`nvml/rows.py` explains the lines and parses them, live as well.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.nvml.rows import SOURCE, NvmlRows
from goodput_queries.errors import IngestError

KIND = re.compile(rb'"kind"\s*:\s*"(?:meta|fast|slow|event|process|host|clock)"')


class NvmlRecording(RecordedFile):
    """A recording of one node's GPUs through NVML."""

    name: ClassVar[str] = SOURCE

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some of the recorder's kinds."""
        return json_lines.are_most(head) and _has_reading(head)

    def extract(self) -> Iterator[Batch]:
        """Yield samples, processes, events, the node's own figures and the GPUs, part by part."""
        head = files.head(self.path)
        if head.strip() and not _has_reading(head):
            raise IngestError(
                f"{self.path}: this is not an NVML recording; expected JSON lines with a kind "
                "(meta, fast, slow, host) and a time t."
            )
        rows = NvmlRows(self.options.cluster, str(self.path))
        for part in files.parts(self.path):
            yield from rows.batches(part)


def _has_reading(head: bytes) -> bool:
    return any(KIND.search(line) and b'"t"' in line for line in json_lines.objects(head))
