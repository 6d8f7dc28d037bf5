"""Results of tests of nodes: CSV of a site's own checks, JSON of `dcgmi diag -j` and nvbandwidth.

    node,test,result,at,gpu,message
    node017,burn-in,fail,2026-11-02T09:30:00Z,3,wrong sum

A result is pass, warn, fail or skip. JSON says neither its node nor its time: options name them.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import csv_table, files
from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS
from goodput_ingest.source import Batch
from goodput_ingest.sources.site.rows import SiteTable
from goodput_queries.errors import IngestError
from goodput_queries.evidence.batch import Reject

FILE_MAX_BYTES = 64 * 1024 * 1024
GPUS_MAX_CHARS = 100
DCGM = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # of DCGM 4, and before
NVBANDWIDTH = "nvbandwidth"
DOCUMENT = re.compile(
    rb'[^{]{0,2000}\{\s*"(?:DCGM Diagnostic|DCGM GPU Diagnostic|nvbandwidth)"\s*:'
)
RESULTS = {
    **dict.fromkeys(("pass", "passed", "ok"), "pass"),
    **dict.fromkeys(("warn", "warning"), "warn"),
    **dict.fromkeys(("fail", "failed", "error"), "fail"),
    **dict.fromkeys(("skip", "skipped", "waived", "not run", "not found", "notrun"), "skip"),
}
Found = tuple[str, object, object, str]  # test, status, gpu, message


class NodeTests(SiteTable):
    """A file of test results."""

    name: ClassVar[str] = "node-tests"
    table = "node_tests"
    columns = ("cluster", "node", "test", "result", "at", "gpu", "message")
    required = ("node", "test", "result", "at")
    times = ("at",)

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        """Say whether it is a document of these programs, or the header of results."""
        return super().recognises(path, head) or DOCUMENT.match(head) is not None

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.node_tests`; raises IngestError where a document has no node or time."""
        if DOCUMENT.match(files.head(self.path)):
            yield self._of_document()
        else:
            yield from super().extract()

    def row(self, row: dict[str, str], instant: csv_table.Instant) -> dict[str, Any]:
        """Return one row; ValueError says what is wrong with it."""
        at = instant(row["at"])
        if not row["node"] or at is None:
            raise ValueError("it has no node or no time")
        of_row = (row["test"], row["result"], row.get("gpu", ""), row.get("message", ""))
        return self._result(of_row) | {
            "cluster": row.get("cluster") or self.options.cluster,
            "node": row["node"][:TEXT_MAX_CHARS],
            "ts": at,
        }

    def _of_document(self) -> Batch:
        options = self.options
        if options.node is None or options.observed_at is None:
            raise IngestError(
                f"{self.path}: the results say neither which node they are of nor when it was "
                "tested. Name both with --node and --observed-at."
            )
        text = b"".join(part.data for part in files.parts(self.path))[:FILE_MAX_BYTES]
        rows: list[dict[str, Any]] = []
        rejects: list[Reject] = []
        common = {"cluster": options.cluster, "node": options.node, "ts": options.observed_at}
        for found in _results(_document(text, self.path)):
            try:
                rows.append(self._result(found) | common)
            except ValueError as error:
                rejects.append(Reject(None, f"{self.name}: {error}.", printable(str(found), 500)))
        digest = hashlib.blake2b(text + repr(common).encode(), digest_size=16).hexdigest()
        (parsed,) = self.tables(rows, rejects)
        return parsed.batch(source=self.name, origin=str(self.path), digest=digest)

    def _result(self, found: Found) -> dict[str, Any]:
        """Return the columns of one result; ValueError says what is wrong with it."""
        test, status, gpu, message = found
        result = RESULTS.get(str(status).strip().lower())
        if not test:
            raise ValueError("it names no test")
        if result is None:
            raise ValueError(f"result {str(status)[:40]!r} is none of pass, warn, fail, skip")
        return {
            "test": printable(test, TEXT_MAX_CHARS),
            "gpu_indices": printable("" if gpu is None else str(gpu), GPUS_MAX_CHARS),
            "result": result,
            "message": printable(message, TEXT_MAX_CHARS) or None,
        }


def _document(text: bytes, path: Path) -> dict[str, Any]:
    """Return the object of a document; what programs print before it is passed over."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text[text.index(b"{") :].decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise IngestError(f"{path}: the JSON of the results cannot be read: {error}.") from error
    return dict(found)


def _results(document: dict[str, Any]) -> Iterator[Found]:
    if NVBANDWIDTH in document:
        yield from _of_nvbandwidth(_object(document[NVBANDWIDTH]))
        return
    root = next(_object(document[name]) for name in DCGM if name in document)
    if root.get("runtime_error"):
        yield "dcgmi diag", "fail", None, str(root["runtime_error"])
    for category in map(_object, _list(root.get("test_categories"))):
        for test in map(_object, _list(category.get("tests"))):
            name = f"dcgmi diag: {test['name']}" if test.get("name") else ""
            results = _list(test.get("results")) or _list([test.get("test_summary")])
            for result in map(_object, results):
                gpu = result.get("gpu_ids", result.get("entity_id"))
                if result:
                    yield name, result.get("status"), gpu, _message(result)


def _of_nvbandwidth(root: dict[str, Any]) -> Iterator[Found]:
    if root.get("error"):
        yield NVBANDWIDTH, "fail", None, str(root["error"])
    for case in map(_object, _list(root.get("testcases"))):
        name = f"{NVBANDWIDTH}: {case['name']}" if case.get("name") else ""
        measured = f"sum {case.get('sum')}, {case.get('bandwidth_description', '')}"
        shown = case.get("error") or (measured if "sum" in case else "")
        if name:
            yield name, case.get("status"), None, str(shown)


def _message(result: dict[str, Any]) -> str:
    """Return the warnings of a result, else what it informs of."""
    texts = _list(result.get("warnings")) or _list(result.get("info"))
    said = [one.get("warning", "") if isinstance(one, dict) else str(one) for one in texts]
    return "; ".join(filter(None, map(str, said)))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
