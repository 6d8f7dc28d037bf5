"""NCCL Inspector logs (NCCL 2.28 to 2.30): one JSON object for each operation of one rank.

Its Prometheus mode is read as well (nccl_inspector_prometheus.py).

Lines become rows of `FLAT` (nccl_inspector_plain.py, nccl_inspector_records.py), which `_checked`
turns into `raw.collectives` and rejects. Verbose records say when an operation ran; the others only
when the line was written.

A proposed later format writes header and metadata once and then records without them: a line with
a header but no operation is remembered and lends its header to what follows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.formats.row_groups import Held
from goodput_ingest.prefetch import prefetch
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_ingest.sources.nccl import inspector_prometheus
from goodput_ingest.sources.nccl.inspector_plain import flat
from goodput_ingest.sources.nccl.inspector_records import FLAT, HEADER, METADATA
from goodput_queries.errors import IngestError

GB = 1e9  # the plugin's GB/s are decimal
SIGN_BIT = 2**63  # a size above is 2^64 minus the true one: the plugin took the type's size as -1
EPOCH_US_MAX = json_lines.EPOCH_S_MAX * 1_000_000
OPERATIONS = (b'"coll_perf"', b'"p2p_perf"')
MARKS = (*OPERATIONS, b'"inspector_output_format_version"')

OF_THE_HEADER = (*HEADER, *METADATA)
NEEDED = {  # column of FLAT: how the file calls it
    "id": "header.id",
    "rank": "header.rank",
    "n_ranks": "header.n_ranks",
    "hostname": "metadata.hostname",
    "pid": "metadata.pid",
    "dump_timestamp_us": "metadata.dump_timestamp_us",
    "operation": "the operation's name",
    "sequence_number": "the sequence number",
    "exec_time_us": "the execution time",
}


class NcclInspector(RecordedFile):
    """A log of the NCCL Inspector plugin: one process, every communicator it was in."""

    name: ClassVar[str] = "nccl-inspector"
    is_followed: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and its cluster."""
        super().__init__(path, options)
        self._header: dict[str, Any] = {}

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some with an operation or Inspector metadata.

        Or samples of the Prometheus mode.
        """
        if inspector_prometheus.is_of_prometheus_mode(head):
            return True
        return json_lines.are_most(head) and _has_record(head)

    @staticmethod
    def context(content: bytes) -> bytes | None:
        """Return the last header that came alone: records that follow it have none."""
        start = len(content)
        while (at := content.rfind(b'"header"', 0, start)) >= 0:
            start, end = content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at)
            line = content[start : end if end >= 0 else len(content)]
            if not any(mark in line for mark in OPERATIONS):
                return line
        return None

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.collectives`, part by part; a line that was cut is a reject.

        Of the Prometheus mode, `raw.collective_summaries`.
        """
        head = files.head(self.path)
        if inspector_prometheus.is_of_prometheus_mode(head):
            yield from self._summaries()
            return
        is_one_cut_line = head.lstrip().startswith(b'{"') and b"\n" not in head
        if head.strip() and not is_one_cut_line and not _has_record(head):
            raise IngestError(
                f"{self.path}: no line is a record of the NCCL Inspector; expected "
                '{"header": ..., "metadata": ..., "coll_perf": ...}.'
            )
        held, digest = Held("collectives"), ""
        for part in prefetch(files.parts(self.path)):
            digest = files.digest(part, "collectives", self.options.cluster, self._header, digest)
            records = flat(part.data, part.first_line)
            rows, rejects = _checked(self._with_carried_header(records), part)
            cluster = pl.lit(self.options.cluster, pl.String).alias("cluster")
            held.add(Parsed("collectives", rows.with_columns(cluster), rejects))
            if whole := held.whole_groups():
                yield whole.batch(source=self.name, origin=str(self.path), digest=digest)
        if held.parts:
            rest = f"{digest}-rest"
            yield held.rest().batch(source=self.name, origin=str(self.path), digest=rest)

    def _summaries(self) -> Iterator[Batch]:
        """Yield the rows of the Prometheus mode: means over windows."""
        known = inspector_prometheus.written(self.path, self.options)
        for part in files.parts(self.path):
            key = files.digest(part, "collective_summaries", self.options.cluster, known)
            rows, rejects, known = inspector_prometheus.read(
                part, self.path, known, self.name, self.options.cluster
            )
            yield Batch("collective_summaries", rows, self.name, str(self.path), key, rejects)

    def _with_carried_header(self, records: pl.DataFrame) -> pl.DataFrame:
        """Lend the last header that came alone to the lines without one; drop header lines."""
        if self._header:
            records = pl.concat([pl.DataFrame([self._header], schema=FLAT), records])
        is_marker = pl.col("is_p2p").is_null() & pl.col("id").is_not_null()
        markers = records.filter(is_marker)
        if markers.is_empty():
            return records
        self._header = markers.select(OF_THE_HEADER).row(-1, named=True)
        lone = pl.when(is_marker).then(pl.struct(OF_THE_HEADER)).forward_fill()
        return (
            records.with_columns(is_marker.alias("is_marker"), lone.alias("lone"))
            .with_columns(
                pl.when(pl.col("id").is_null())
                .then(pl.col("lone").struct.field(name))
                .otherwise(pl.col(name))
                .alias(name)
                for name in OF_THE_HEADER
            )
            .filter(~pl.col("is_marker"))
            .select(*FLAT)
        )


def _has_record(head: bytes) -> bool:
    return any(mark in line for line in json_lines.objects(head) for mark in MARKS)


def _checked(records: pl.DataFrame, part: files.Part) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the rows of `raw.collectives` less source and cluster, and the rejects."""
    ranges = {
        "rank": (0, 2**31 - 1),
        "n_ranks": (1, 2**31 - 1),
        "pid": (0, 2**63 - 1),
        "sequence_number": (0, 2**63 - 1),
        "exec_time_us": (0, 1e15),
        "dump_timestamp_us": (1, EPOCH_US_MAX),
    }
    refusals = {  # in this order; is_p2p is null where there is no operation
        "there is no operation: neither coll_perf nor p2p_perf": pl.col("is_p2p").is_null(),
        **{f"{called} is missing": pl.col(name).is_null() for name, called in NEEDED.items()},
        **{
            f"{NEEDED[name]} is out of range": ~pl.col(name).is_between(low, high)
            for name, (low, high) in ranges.items()
        },
    }
    is_bad = records.select(
        pl.any_horizontal(pl.col("refusal").is_not_null(), *refusals.values()).fill_null(
            value=False
        )
    ).to_series()
    rejects: list[Reject] = []
    if is_bad.any():
        reasons = [pl.when(condition).then(pl.lit(text)) for text, condition in refusals.items()]
        rejects += [
            Reject(n, reason, json_lines.printable(part.lines[n - part.first_line], 500))
            for n, reason in records.filter(is_bad)
            .select("line", pl.coalesce("refusal", *reasons))
            .iter_rows()
        ]
        records = records.filter(~is_bad)
    rejects += part.cut
    return records.select(_columns()), rejects


def _columns() -> list[pl.Expr]:
    """Return `raw.collectives` from FLAT, in base units."""
    is_wrapped = pl.col("size") > SIGN_BIT
    size = pl.col("size").reinterpret(signed=True).abs()
    # bandwidth is proportional to the size, so the wrong size is taken out of it again
    size_ratio = pl.when(is_wrapped).then(size / pl.col("size")).otherwise(1.0)

    def rate(name: str) -> pl.Expr:
        value = pl.col(name) * size_ratio * GB
        return pl.when(value.is_finite() & (value >= 0)).then(value)

    def moment(name: str) -> pl.Expr:
        is_known = pl.col(name).is_between(1, EPOCH_US_MAX)
        return pl.when(is_known).then(pl.col(name)).cast(pl.Datetime("us"))

    def small(name: str) -> pl.Expr:
        return pl.when(pl.col(name).is_between(-1, 2**31 - 1)).then(pl.col(name)).cast(pl.Int32)

    return [
        pl.col("hostname").alias("node"),
        pl.col("pid"),
        pl.col("id").alias("comm_id"),
        pl.col("comm_name"),
        pl.col("rank").cast(pl.Int32),
        pl.col("n_ranks").cast(pl.Int32).alias("ranks"),
        small("nnodes").alias("nodes"),
        pl.col("operation"),
        pl.col("is_p2p"),
        small("peer"),
        pl.col("sequence_number"),
        pl.when(size >= 0).then(size).alias("message_bytes"),
        (pl.col("exec_time_us") / 1e6).alias("exec_time_s"),
        pl.col("timing_source"),
        rate("algobw_gbs").alias("algbw_bytes_per_s"),
        rate("busbw_gbs").alias("busbw_bytes_per_s"),
        moment("dump_timestamp_us").alias("dumped_at"),
        moment("start_us").alias("started_at"),
        moment("kernel_start_us").alias("kernel_start_at"),
        moment("kernel_stop_us").alias("kernel_stop_at"),
        small("channels"),
        pl.col("git_rev").alias("plugin_version"),
    ]
