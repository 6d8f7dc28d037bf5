"""Logs of requests to a serving engine or gateway: CSV with a header, or JSON lines.

    request_id,arrival,first_token,end,input_tokens,output_tokens,model,status,endpoint,tenant
    r1,2026-11-24T12:00:00.120Z,2026-11-24T12:00:00.310Z,2026-11-24T12:00:04Z,712,150,m,ok,,nlp

    {"request_id": "r1", "arrival": 1795176000.12, "end": 1795176004.0, "output_tokens": 150}

Times are ISO 8601 with an offset, or seconds or milliseconds since 1970. Fields of other names are
not read; `request_fields.NAMES` has the names that are.
"""

import csv
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import polars as pl

from goodput_ingest.formats import csv_table, files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_queries.errors import IngestError
from goodput_serving.sources import request_fields

TABLE: Final = "serving_requests"
ID_BYTES: Final = 8
USAGE: Final = "usage"  # where an API's answer has its numbers of tokens
Line = tuple[int, str, "Mapping[str, str]"]


class ServingRequests(RecordedFile):
    """A file of requests."""

    name: ClassVar[str] = "serving-requests"
    is_followed: ClassVar[bool] = True

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the header, or most objects of the first lines, have a request's fields."""
        if json_lines.are_most(head):
            return request_fields.has_requests(_names_of_objects(head))
        return request_fields.has_requests(set(csv_table.header_names(head)))

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.serving_requests`, part by part; rows that cannot be read are rejects."""
        head = files.head(self.path)
        # new lines of a file that grows may be broken ones alone
        is_json = json_lines.without_stamps(head.lstrip())[:1] in {b"{", b"["}
        if head.strip() and not is_json and not self.recognises(self.path, head):
            raise IngestError(
                f"{self.path}: these are not requests; expected the fields arrival, first_token or "
                "end, and input_tokens, output_tokens or model, as a CSV header or in JSON lines."
            )
        header: list[str] = []
        for part in files.parts(self.path):
            rejects: list[Reject] = []
            if is_json:
                lines = list(self._objects(part, rejects))
            else:
                lines = list(self._cells(part, header, rejects))
            rows = self._rows(lines, rejects)
            rejects += part.cut
            digest = files.digest(part, self.options.cluster, self.options.zone, header)
            yield Batch(TABLE, rows, self.name, str(self.path), digest, rejects)

    def _rows(self, lines: list[Line], rejects: list[Reject]) -> pl.DataFrame:
        texts = request_fields.columns([fields for _, _, fields in lines])
        rows, problems = request_fields.read(texts, self.options.zone)
        is_bad = problems.is_not_null()
        for at in is_bad.arg_true():
            number, line, _ = lines[at]
            rejects.append(self._reject(number, problems[at], line))
        rejects += self._unknown_statuses(texts["status"].filter(~is_bad))
        ids = [row_id or _digest(line) for row_id, (_, line, _) in zip(rows["request_id"], lines)]  # noqa: B905
        return (
            rows.with_columns(
                pl.Series("request_id", ids, pl.String),
                pl.col("endpoint").fill_null(""),
                pl.col("model").fill_null(""),
                pl.lit(self.options.cluster, pl.String).alias("cluster"),
                pl.lit(self.name).alias("source"),
            )
            .filter(~is_bad)
            .rechunk()
        )

    def _unknown_statuses(self, statuses: pl.Series) -> list[Reject]:
        """Return a reject for each status that is not known; its requests have none."""
        is_unknown = statuses.is_not_null() & request_fields.status(statuses).is_null()
        return [
            Reject(
                None,
                f"{self.name}: status {json_lines.printable(text, 40)!r} is not known; expected "
                "ok, aborted or error, or a status of HTTP. Its requests are read without one.",
            )
            for text in statuses.filter(is_unknown).unique().sort()
        ]

    def _objects(self, part: files.Part, rejects: list[Reject]) -> Iterator[Line]:
        for number, line in enumerate(part.lines, part.first_line):
            if json_lines.is_blank(line):
                continue
            try:
                yield number, json_lines.unlabelled(line), _texts(json_lines.record(line))
            except FieldError as error:
                rejects.append(self._reject(number, str(error), line))

    def _cells(self, part: files.Part, header: list[str], rejects: list[Reject]) -> Iterator[Line]:
        """Yield the cells of each line by column; the first line of a file fills `header`."""
        for number, line in enumerate(part.lines, part.first_line):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                cells = next(csv.reader([line]))
            except csv.Error as error:
                rejects.append(self._reject(number, str(error), line))
                continue
            if not header:
                header += [cell.strip() for cell in cells]
            elif len(cells) == len(header):
                yield number, line, dict(zip(header, map(str.strip, cells), strict=True))
            else:
                reason = f"the line has {len(cells)} fields, expected {len(header)}"
                rejects.append(self._reject(number, reason, line))

    def _reject(self, number: int, reason: str, line: str) -> Reject:
        shown = json_lines.printable(line, request_fields.ERROR_MAX_CHARS)
        return Reject(number, f"{self.name}: {reason}.", shown)


def _names_of_objects(head: bytes) -> set[str]:
    names: set[str] = set()
    for line in json_lines.objects(head):
        try:
            names |= _texts(json_lines.record(line.decode("utf-8", "replace"))).keys()
        except FieldError:
            continue
    return names


def _texts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts and numbers of an object, those of its `usage` among them."""
    usage = record.get(USAGE)
    every = {**usage, **record} if isinstance(usage, dict) else record
    return {
        name: value if isinstance(value, str) else repr(value)
        for name, value in every.items()
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    }


def _digest(line: str) -> str:
    return hashlib.blake2b(line.encode("utf-8", "replace"), digest_size=ID_BYTES).hexdigest()
