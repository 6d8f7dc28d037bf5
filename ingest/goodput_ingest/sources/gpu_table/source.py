"""Readings that `nvidia-smi --query-gpu` (CSV), `-q`, `dmon` or `dcgmi dmon` print.

    timestamp, index, uuid, utilization.gpu [%], power.draw [W]
    2026/11/27 18:37:24.961, 0, GPU-e186d961-..., 97 %, 642.11 W

    #Date       Time        gpu    pwr  gtemp     #Entity   GPUTL   SMACT
    #YYYYMMDD   HH:MM:SS    Idx      W      C     ID
     20261127   18:37:27      0     70     38     GPU 0     97      0.912

Their times are local. dcgmi prints none, nvidia-smi dmon only with `-o DT`; a collector's before
the line counts then. Without a UUID a GPU is called by its node and its index there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import printable
from goodput_ingest.formats.parsed import INSTANT
from goodput_ingest.formats.timestamps import ZoneNeededError, instants
from goodput_ingest.gpu_metrics import Memory, gpu_rows, labels
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_ingest.sources.gpu_table import query_log
from goodput_ingest.sources.gpu_table.columns import Column, is_known, of_dmon, of_query, values
from goodput_queries.errors import IngestError

TIMES: Final = ("timestamp", "date", "time")
LABELS: Final = {  # column in lower case -> label, as labels.normalise knows it
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "index": "index",
    "gpu": "index",
    "entity": "index",
    "pci.bus_id": "pci_bus_id",
    "gpu_bus_id": "pci_bus_id",
    "name": "name",
    "gpu_name": "name",
    "driver_version": "driver_version",
    "vbios_version": "vbios_version",
}
DMON: Final = re.compile(  # nvidia-smi pmon has processes beside the GPU, and is not read
    r"#\s*(?:date[\s,]+)?(?:time[\s,]+)?(?:gpu|entity)(?=[\s,])(?![\s,]+pid\b)", re.IGNORECASE
)
CELLS: Final = re.compile(  # a row of --query-gpu, to recognise a file without a header
    r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, .*|(?:.*, )?[\d.]+ (?:%|MiB|W|MHz)(?:, .*)?"
)
DATE: Final = re.compile(  # of a loop in a shell: a day of the week or an ISO date, time and year
    r"(?=.{0,50}\d:\d\d:\d\d)(?=.{0,60}\b20\d\d\b)"
    r"(?:\d{4}-\d\d-\d\d|[^\W\d]{2})[\w./ :+-]{6,60}"
)
NO_TIME: Final = "it has no time"
ADD_UUID: Final = ", or add uuid to `nvidia-smi --query-gpu`"
ADD_TIMESTAMP: Final = "Add timestamp to `nvidia-smi --query-gpu`"
ADD_DATE: Final = "Run nvidia-smi dmon with -o DT, or pipe it through ts '%Y-%m-%dT%H:%M:%S%z'"
TWICE: Final = "comes twice"
IN_UTC: Final = (
    ". Run it with TZ=UTC; or read the lines of each hour alone, with --timezone Etc/GMT-2 (UTC+2) "
    "and so on"
)
NO_NODE: Final = (
    "gpu-table: GPUs whose node no file names are in no inventory: name it with --node."
)
STOPPED: Final = "dmon was stopped"
CONTENT_MAX_CHARS: Final = 500


@dataclass(frozen=True)
class _Header:
    """Names of the columns, and whether they are divided by commas; is_query: of --query-gpu."""

    names: tuple[str, ...]
    is_csv: bool
    is_query: bool

    def column(self, name: str) -> Column | None:
        return of_query(name) if self.is_query else of_dmon(name)

    def cells(self, text: str) -> list[str]:
        """Return the cells of a row; ValueError says why it is none of a GPU."""
        cells = [cell.strip() for cell in text.split(",")] if self.is_csv else text.split()
        if self.names[0] == "entity":
            if cells[0] != "GPU":
                raise ValueError(f"it is of {cells[0][:40]}; only whole GPUs are read")
            del cells[0]
        if len(cells) != len(self.names):
            raise ValueError(f"it has {len(cells)} cells, the header {len(self.names)}")
        return cells


@dataclass
class _Rows:
    """Rows under one header: number of each line, a collector's time, the cells."""

    lines: list[int] = field(default_factory=list)
    stamps: list[datetime | None] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)

    def add(self, line: int, stamp: datetime | None, cells: list[str]) -> None:
        self.lines.append(line)
        self.stamps.append(stamp)
        self.cells.append(cells)


class GpuTable(RecordedFile):
    """A table of readings of one node's GPUs."""

    name: ClassVar[str] = "gpu-table"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the options."""
        super().__init__(path, options)
        self._header: _Header | None = None
        self._log: query_log.QueryLog | None = None
        self._rejects: list[Reject] = []
        self._reported: set[str] = set()  # columns of texts

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether it begins with a header of these programs, or a row of the CSV without."""
        text = json_lines.without_stamps(head).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        first, second = [*lines, "", ""][:2]
        is_loop = DATE.fullmatch(first) is not None and lines.count(second) > 1
        return (
            _header(first) is not None
            or (is_loop and _header(second) is not None)
            or CELLS.fullmatch(first) is not None
            or query_log.begins(text)
        )

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.gpu_samples` and what else the readings say, part by part.

        Raises IngestError where nothing says when, or of which GPU, the rows are.
        """
        memory = Memory()
        for part, digest, tables in self._parts():
            found = [
                parsed
                for header, rows in tables.items()
                for parsed in gpu_rows(
                    *self._readings(header, rows),
                    source=self.name,
                    cluster=self.options.cluster,
                    memory=memory,
                )
            ]
            self._rejects += part.cut
            for number, parsed in enumerate(found):
                yield replace(parsed, note="" if self.options.node else NO_NODE).batch(
                    source=self.name, origin=str(self.path), digest=f"{digest}-{number}"
                )
            if self._rejects:
                rows = pl.DataFrame(schema={"gpu_uuid": pl.String, "source": pl.String})
                yield Batch("gpu_samples", rows, self.name, str(self.path), digest, self._rejects)
                self._rejects = []

    def _parts(self) -> Iterator[tuple[files.Part, str, dict[_Header, _Rows]]]:
        """Yield parts, their digests and tables; what is open at the end is of the last part."""
        last = None
        for part in files.parts(self.path):
            if last is not None:
                yield last
            state = self._header if self._log is None else self._log.state
            last = part, files.digest(part, state, self.options), self._tables(part)
        if last is not None:
            if self._log is not None and (row := self._log.end()) is not None:
                self._add_facts(last[2], last[0].first_line + len(last[0].lines) - 1, None, row)
            yield last

    def _add_facts(
        self,
        tables: dict[_Header, _Rows],
        number: int,
        stamp: datetime | None,
        row: dict[str, str],
    ) -> None:
        """Add what a log says of a GPU, up to a line."""
        header = self._checked(_Header(tuple(row), is_csv=True, is_query=True))
        if all(name in LABELS or name in TIMES for name in row):
            self._reject(number, "nothing that is read stands there of this GPU", str(row))
            return
        tables.setdefault(header, _Rows()).add(number, stamp, list(row.values()))

    def _tables(self, part: files.Part) -> dict[_Header, _Rows]:
        """Return the rows of a part by their header; what is neither is rejected."""
        found: dict[_Header, _Rows] = {}
        for number, line in enumerate(part.lines, part.first_line):
            stamp, text = json_lines.split_stamp(line)
            if self._log is None and self._header is None and query_log.begins(text):
                self._log = query_log.QueryLog()
            if self._log is not None:
                if (row := self._log.take(text)) is not None:
                    self._add_facts(found, number, stamp, row)
                continue
            text = text.strip()
            may_be = text[:1] == "#" or text[:1].isalpha()
            if may_be and (header := _header(text)) is not None:
                self._header = self._checked(header)
            elif DATE.fullmatch(text):
                continue
            elif self._header is None and text and not text.startswith("<?xml"):
                raise IngestError(
                    f"{self.path}: line {number} comes before any header. Leave out noheader, or "
                    "write the names of `nvidia-smi --query-gpu`, each once, with commas before "
                    "the first line."
                )
            elif self._header is not None and not _says_nothing(text):
                try:
                    cells = self._header.cells(text)
                except ValueError as error:
                    self._reject(number, str(error), text)
                    continue
                found.setdefault(self._header, _Rows()).add(number, stamp, cells)
        return found

    def _checked(self, header: _Header) -> _Header:
        """Return the header; IngestError where it does not say of which GPU a row is."""
        named = {LABELS[name.lower()] for name in header.names if name.lower() in LABELS}
        if not named & {"uuid", "index", "pci_bus_id"}:
            raise IngestError(
                f"{self.path}: nothing says of which GPU a row is. "
                "Add uuid to `nvidia-smi --query-gpu`."
            )
        if "uuid" not in named and self.options.node is None:
            advice = ", or leave out -d" if self._log is not None else ADD_UUID * header.is_query
            raise IngestError(
                f"{self.path}: its GPUs have a number and no UUID. Name their node with --node"
                f"{advice}."
            )
        return header

    def _readings(
        self, header: _Header, rows: _Rows
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Return points, series and label sets, as `gpu_rows` takes them."""
        table = pl.DataFrame(
            rows.cells, schema=dict.fromkeys(header.names, pl.String), orient="row"
        ).with_columns(pl.Series("#line", rows.lines), self._moments(header, rows))
        table = table.filter(pl.col("#ts").is_not_null())
        named = [name for name in header.names if name.lower() in LABELS]
        sets = table.select(named).unique(maintain_order=True)
        of_row = table.join(
            sets.with_row_index("#labels"), on=named, how="left", maintain_order="left"
        )["#labels"].cast(pl.Int64)
        series: list[dict[str, object]] = []
        points = []
        for name in header.names:
            if name in named or name.lower() in TIMES:
                continue
            if (column := header.column(name)) is None:
                self._reject_column(name, "its unit is not known", table)
                continue
            value = self._numbers(name, table, is_known=is_known(column))
            points.append(
                pl.DataFrame(
                    {
                        "series": of_row + len(series),
                        "ts": table["#ts"],
                        "value": value * column.factor,
                    }
                ).drop_nulls()
            )
            series += [{"metric": column.metric, "labels": row} for row in range(sets.height)]
        sets = sets.rename({name: LABELS[name.lower()] for name in named})
        schema = {"series": pl.Int64(), "ts": INSTANT, "value": pl.Float64()}
        return (
            pl.concat([pl.DataFrame(schema=schema), *points]),
            pl.DataFrame(series, schema={"metric": pl.String, "labels": pl.Int64}),
            labels.normalise(self._identified(sets), node=self.options.node),
        )

    def _identified(self, sets: pl.DataFrame) -> pl.DataFrame:
        """Return label sets with a UUID; of those without one it is node and index, or address."""
        if "uuid" in sets.columns:
            return sets
        place = pl.col("index" if "index" in sets.columns else "pci_bus_id")
        return sets.with_columns(uuid=pl.format("{}#{}", pl.lit(self.options.node), place))

    def _numbers(self, name: str, table: pl.DataFrame, *, is_known: bool) -> pl.Series:
        """Return the numbers of a column; other texts are rejected, a column of them once."""
        found = values(table[name])
        is_text = found.is_nan().fill_null(value=False)
        if not is_known and is_text.any() and is_text.sum() == found.is_not_null().sum():
            self._reject_column(name, "it has no number", table)
        elif is_text.any():
            for line, cell in table.filter(is_text).select("#line", name).iter_rows():
                self._reject(line, f"{name} is {cell[:40]!r}, no number", cell)
        return found.fill_nan(None)

    def _moments(self, header: _Header, rows: _Rows) -> pl.Series:
        """Return when each row was read, naive UTC; null where its line is rejected."""
        own = [i for i, name in enumerate(header.names) if name.lower() in TIMES]
        is_dated = any(header.names[i].lower() != "time" for i in own)
        stamps = pl.Series("#ts", rows.stamps, INSTANT)
        if not is_dated or (self.options.zone is None and not stamps.null_count()):
            if stamps.null_count() == len(stamps):
                how = ADD_TIMESTAMP if header.is_query else ADD_DATE
                raise IngestError(f"{self.path}: nothing says when a row was read. {how}.")
            problems = pl.Series([NO_TIME if at is None else None for at in stamps])
        else:
            texts = [_iso(" ".join(cells[i] for i in own)) for cells in rows.cells]
            if self.options.zone is None:
                raise ZoneNeededError(
                    f"{self.path}: its times are local ({texts[0][:40]}) and carry no offset from "
                    "UTC. Name their time zone with --timezone, such as Europe/Berlin."
                )
            stamps, problems = instants(pl.Series("#ts", texts), self.options.zone)
            problems = pl.select(
                pl.when(stamps.is_null() & problems.is_null())
                .then(pl.lit(NO_TIME))
                .otherwise(problems)
            ).to_series()
        for line, cells, why in zip(rows.lines, rows.cells, problems, strict=True):
            if why is not None:
                step = IN_UTC if TWICE in why else ""
                self._reject(line, why + step, ", ".join(cells))
        return stamps

    def _reject(self, line: int, why: str, text: str) -> None:
        content = printable(text, CONTENT_MAX_CHARS)
        self._rejects.append(
            Reject(line, f"{self.name}: line {line}: {printable(why, 200)}.", content)
        )

    def _reject_column(self, name: str, why: str, table: pl.DataFrame) -> None:
        if name not in self._reported:
            self._reported.add(name)
            shown = printable(f"column {name[:40]}: {why}", CONTENT_MAX_CHARS)
            cell = printable(str(table[name].first()), CONTENT_MAX_CHARS)
            self._rejects.append(Reject(None, f"{self.name}: {shown}; it was left out.", cell))


def _header(text: str) -> _Header | None:
    """Return the header that a line is; None where it is none of these programs'."""
    if DMON.match(text):
        names = re.split(r"[\s,]+", text.removeprefix("#").strip())
        if names[0] == "Entity":
            names[0] = "entity"
        is_csv, is_query = "," in text, False
    else:
        names = [name.strip() for name in text.split(",")]
        is_csv = is_query = True
        if not any("." in name and is_known(of_query(name)) for name in names):
            return None
    once = {LABELS.get(name.lower(), name) for name in names if name[:1] != "#"}
    return _Header(tuple(names), is_csv, is_query) if len(once) == len(names) else None


def _says_nothing(text: str) -> bool:
    """Say whether a line is blank, one of units, or the end of the program."""
    return not text or text.startswith(("#", STOPPED)) or text.split(maxsplit=1)[0].lower() == "id"


def _iso(text: str) -> str:
    """Return `2026/11/27 18:37:24.961` or `20261127 18:37:24` with dashes."""
    return re.sub(r"^(\d{4})/?(\d\d)/?(\d\d)(?= )", r"\1-\2-\3", text)
