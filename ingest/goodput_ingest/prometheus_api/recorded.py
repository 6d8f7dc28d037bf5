"""Saved answers of Prometheus's HTTP API: output of `curl`, one answer or one a line.

    curl -s http://prometheus:9090/api/v1/query \
        --data-urlencode 'query={__name__=~"DCGM_FI_.*"}[1h]' > gpus.json

A range selector gives the samples as they were scraped. `query_range` repeats old ones over gaps of
up to five minutes; its answers are read as well, with a warning. So are the forms of `exports`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import files
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.gpu_metrics import Memory, is_gpu_metric
from goodput_ingest.host_metrics import is_host_metric
from goodput_ingest.prometheus_api.answer import Answer, AnswerError, Series, is_on_a_grid, parse
from goodput_ingest.prometheus_api.batches import batches, digest_of
from goodput_ingest.prometheus_api.exports import as_answer, is_export
from goodput_ingest.prometheus_api.gpu_series import parsed_gpu_rows
from goodput_ingest.prometheus_api.host_series import parsed_host_rows
from goodput_ingest.prometheus_api.other_series import is_known, of_packages
from goodput_ingest.prometheus_api.replicas import without_doubles
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_queries.errors import IngestError

FILE_MAX_BYTES = 512 * 1024 * 1024  # twenty million points; they are parsed in memory
RESULT_TYPE = re.compile(rb'"resultType"\s*:\s*"(?:matrix|vector)"')
KUBERNETES_NAME = re.compile(rb'"__name__"\s*:\s*"kube_')
READ = (is_gpu_metric, is_host_metric, is_known)
GRID_WARNING = (
    "the points lie on a grid, as query_range evaluates them: gaps of up to five minutes are "
    "filled with old values. Save a range selector (metric[1h]) from /api/v1/query instead."
)


def answers(path: Path) -> Iterator[Answer]:
    """Yield each answer of a file; raise IngestError where it has none."""
    body, wrong = as_answer(_body(path))
    try:
        found = parse(body)
        yield replace(found, rejects=[*found.rejects, *(Reject(*one) for one in wrong)])
    except AnswerError as error:
        lines = body.splitlines()
        if len(lines) < 2 or not _is_answer(lines[0]):
            raise IngestError(f"{path}: {error}.") from error
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    yield parse(line)
            except AnswerError as of_line:
                said = Reject(number, f"the line is not an answer to a query: {of_line}")
                yield Answer([], [said])


def _is_answer(line: bytes) -> bool:
    try:
        parse(line)
    except AnswerError:
        return False
    return True


def has_answer(head: bytes) -> bool:
    """Say whether a file begins as the answer to a query."""
    return (head.lstrip()[:1] == b"{" and RESULT_TYPE.search(head) is not None) or is_export(head)


class PrometheusRecording(RecordedFile):
    """A file of answers with series of GPU exporters, node_exporter or what packages read."""

    name: ClassVar[str] = "prometheus"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether this is an answer to a query that is not about Kubernetes."""
        return has_answer(head) and KUBERNETES_NAME.search(head) is None

    def extract(self) -> Iterator[Batch]:
        """Yield readings and owners of GPUs, readings of hosts and others, answer by answer."""
        memory = Memory()
        for answer in answers(self.path):
            series = without_doubles(answer.series)
            cluster = self.options.cluster
            parsed = parsed_rows(series, source=self.name, cluster=cluster, memory=memory)
            rejects = [*answer.notes(), *_skipped(answer)]
            digest = digest_of([answer], self.options.cluster)
            yield from batches(parsed, rejects, self.name, str(self.path), digest)


def parsed_rows(
    series: Sequence[Series], *, source: str, cluster: str | None, memory: Memory
) -> list[Parsed]:
    """Return the rows of GPUs, hosts and packages by raw table; skips other series."""
    return [
        *parsed_gpu_rows(series, source=source, cluster=cluster, memory=memory),
        *parsed_host_rows(series, cluster=cluster),
        *(rows for other in of_packages() for rows in other.parsed(series, cluster=cluster)),
    ]


def _skipped(answer: Answer) -> list[Reject]:
    """Return rejects for series that are not read, and for facts that the answer lacks."""
    found: list[Reject] = []
    others = sorted(
        {
            one.name or "(no name)"
            for one in answer.series
            if not any(is_read(one.name) for is_read in READ)
        }
    )
    if others:
        known = ", ".join(others[:5]) + (" ..." if len(others) > 5 else "")
        found.append(
            Reject(None, f"{len(others)} metrics are not of an exporter that is read: {known}")
        )
    if is_on_a_grid(answer.series):
        found.append(Reject(None, GRID_WARNING))
    return found


def _body(path: Path) -> bytes:
    try:
        with files.open_bytes(path) as file:
            body = file.read(FILE_MAX_BYTES + 1)
    except files.BROKEN_OFF as error:
        raise IngestError(
            f"{path}: the file is cut or damaged ({error}); save it again."
        ) from error
    if len(body) > FILE_MAX_BYTES:
        raise IngestError(
            f"{path}: the file is over {FILE_MAX_BYTES >> 20} MiB; save a shorter time per file."
        )
    return body.removeprefix(files.BYTE_ORDER_MARK)
