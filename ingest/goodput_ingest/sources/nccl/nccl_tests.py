"""Output of nccl-tests (all_reduce_perf and the like): the printed table or `-J file.json`.

The text may carry a collector's timestamps (the first is when a run started), the prefixes of a
launcher (`[1,0]<stdout>:`, `[0]`, `3: `) and anything else the job printed between its lines.
Bandwidths are in 1e9 bytes/s, times in microseconds. The operation is named by newer headers
(`# Collective test starting: all_reduce_perf`), else by the command line, if that was printed.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_queries.errors import IngestError

GB = 1e9
FILE_MAX_BYTES = 64 * 1024 * 1024
LINE_MAX_CHARS = 2_000
INT32_MAX = 2**31 - 1
FIGURE_MAX = 1e18  # of times in us, of bandwidths, and of wrong elements, which are whole numbers
TEXT_MAX_CHARS = 100
PREFIX = re.compile(r"^(?:\[[\d,]{1,20}\](?:<std(?:out|err)>:?)?|\d{1,6}:)\s?")
SETTINGS = re.compile(r"# ?nThread \d+ nGpus \d+ minBytes \d+")
BEGINNING = re.compile(r"# (?:nccl-tests version|Collective test starting:|nThread \d+ nGpus)")
TEST = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|sendrecv|gather|scatter|hypercube)_perf"
)
VERSION = re.compile(
    r"nccl-tests version \S+.*?nccl-library=(\d{1,9})|NCCL version (\d[\w.+]{0,30})"
)
DEVICE = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,9})\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(?P<host>\S{1,255})"
    r" device\s+\d+ \[[^\]]{1,30}\] (?P<model>.{1,100})"
)
ROW = re.compile(
    r"\s*(?P<size>\d{1,18})\s+(?P<count>\d{1,18})\s+(?P<dtype>[a-z]\w{1,30})\s+(?P<rest>\S.{10,400})"
)
LOOKS_LIKE_DEVICE = re.compile(r"#\s+Rank\s+\d")
LOOKS_LIKE_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]+\d*\s+\S+(?:\s+[\d.]+){6}")
OPERATIONS = {
    "all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
    "alltoall": "AlltoAll", "alltoallv": "AlltoAllv", "broadcast": "Broadcast",
    "reduce": "Reduce", "sendrecv": "SendRecv", "gather": "Gather", "scatter": "Scatter",
    "hypercube": "HyperCube",
}  # fmt: skip
NOT_ALL = "the line looks like one of nccl-tests and has not all of"
SCHEMA = raw_tables.columns("nccl_benchmarks")


@dataclass(frozen=True)
class Result:
    """One half of a row of the table, in the table's units."""

    size_bytes: int
    elements: int | None
    dtype: str
    reduction: str
    root: int
    is_in_place: bool
    time_us: float | None
    algbw_gbs: float | None
    busbw_gbs: float | None
    wrong: int | None


@dataclass
class Run:
    """One run of a test: what it says of itself and its results."""

    operation: str = ""
    is_cpu_time: bool = False
    nccl_version: str | None = None
    started_at: datetime | None = None
    ranks: set[int] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    results: list[Result] = field(default_factory=list)


class NcclTests(RecordedFile):
    """Results of one or several runs of nccl-tests."""

    name: ClassVar[str] = "nccl-tests"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether there is a table's settings line or header, or the JSON of `-J`."""
        if head.lstrip().startswith(b"{"):
            return all(mark in head for mark in (b'"results"', b'"out_of_place"', b'"bus_bw"'))
        text = head.decode("utf-8", "replace")
        return SETTINGS.search(text) is not None or (
            "algbw" in text and "busbw" in text and "out-of-place" in text
        )

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.nccl_benchmarks`; rows of the table that cannot be read are rejects."""
        lines = self._lines()
        rejects: list[Reject] = []
        if lines and lines[0].lstrip().startswith("{"):
            runs = [self._of_json("\n".join(lines))]
        else:
            runs = _of_text(lines, rejects)
        if not any(run.results for run in runs) and not rejects:
            raise IngestError(
                f"{self.path}: there is no result of nccl-tests; expected its table "
                "(size, count, type, ... busbw) or the JSON of -J."
            )
        rows = [row for run in runs for row in self._rows(run)]
        digest = hashlib.sha256(repr((rows, rejects)).encode("utf-8", "replace")).hexdigest()
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        key = digest[: files.DIGEST_CHARS]
        yield Batch("nccl_benchmarks", frame, self.name, str(self.path), key, rejects)

    def _lines(self) -> list[str]:
        lines: list[str] = []
        size = 0
        for part in files.parts(self.path):
            size += sum(map(len, part.raw_lines))
            if size > FILE_MAX_BYTES:
                raise IngestError(
                    f"{self.path}: larger than {FILE_MAX_BYTES >> 20} MiB; no output of nccl-tests "
                    "is. Cut out its part of the log."
                )
            lines += part.lines
        return lines

    def _rows(self, run: Run) -> Iterator[tuple[Any, ...]]:
        said = (run.operation, run.nccl_version, run.started_at, sorted(run.hosts), run.results)
        benchmark_id = hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()[:16]
        seen: Counter[tuple[Any, ...]] = Counter()
        for result in run.results:
            key = (
                *(run.operation, result.size_bytes, result.elements, result.dtype),
                *(result.reduction, result.root, result.is_in_place),
            )
            yield (
                *(self.name, self.options.cluster, benchmark_id),
                *key,
                seen[key],
                None if result.time_us is None else result.time_us / 1e6,
                run.is_cpu_time,
                None if result.algbw_gbs is None else result.algbw_gbs * GB,
                None if result.busbw_gbs is None else result.busbw_gbs * GB,
                result.wrong,
                len(run.ranks) or None,
                sorted(run.hosts) or None,
                next(iter(run.models)) if len(run.models) == 1 else None,
                run.nccl_version,
                run.started_at,
            )
            seen[key] += 1

    def _of_json(self, text: str) -> Run:
        """Return the run that `-J` wrote."""
        try:
            whole = json.loads(text)
            if not isinstance(whole, dict):
                raise FieldError(f"the file is {json_lines.kind(whole)}")
            return _run_of_json(whole, self.options)
        except (ValueError, RecursionError) as error:
            raise IngestError(
                f"{self.path}: the JSON of nccl-tests is cut or not as -J writes it: "
                f"{str(error)[:200]}."
            ) from error


def _run_of_json(whole: dict[str, Any], options: ReadOptions) -> Run:
    run = Run(nccl_version=_version(whole.get("nccl_version")))
    args = whole.get("args")
    command = " ".join(map(str, args)) if isinstance(args, list) else str(args or "")
    run.operation = _operation(command)
    config = whole.get("config")
    holder = config if isinstance(config, dict) and "devices" in config else whole
    for device in _objects(holder, "devices"):
        rank = json_lines.whole(device, "rank", 0, INT32_MAX)
        host = json_lines.text(device, "hostname", 255)
        model = json_lines.text(device, "device_info", TEXT_MAX_CHARS)
        run.ranks |= {rank} - {None}  # type: ignore[arg-type]
        run.hosts |= {host} - {None}  # type: ignore[arg-type]
        run.models |= {model} - {None}  # type: ignore[arg-type]
    started = whole.get("start_time")
    if isinstance(started, int | float) and not isinstance(started, bool):
        run.started_at = json_lines.moment({"start_time": started}, "start_time")
    elif isinstance(started, str):
        run.started_at = _local(started, options)
    for result in _objects(whole, "results"):
        size = json_lines.whole(result, "size", 0)
        if size is None:
            raise FieldError("a result has no size")
        root = _root(result.get("root"))
        for name, is_in_place in (("out_of_place", False), ("in_place", True)):
            half = result.get(name)
            if not isinstance(half, dict):
                continue
            run.is_cpu_time |= "cpu_time" in half
            run.results.append(
                Result(
                    size,
                    json_lines.whole(result, "count", 0),
                    json_lines.text(result, "type", TEXT_MAX_CHARS) or "",
                    json_lines.text(result, "redop", TEXT_MAX_CHARS) or "none",
                    root,
                    is_in_place,
                    json_lines.number(half, "cpu_time" if "cpu_time" in half else "time", 0),
                    json_lines.number(half, "alg_bw", 0),
                    json_lines.number(half, "bus_bw", 0),
                    json_lines.whole(half, "nwrong", 0),
                )
            )
    return run


def _root(value: Any) -> int:
    """Return the root, which -J writes as a padded text; -1 is none."""
    text = str(value).strip()
    return min(int(text), INT32_MAX) if re.fullmatch(r"-?\d{1,10}", text) else -1


def _objects(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = fields.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise FieldError(f"{name} is not a list of objects")
    return value


def _local(text: str, options: ReadOptions) -> datetime | None:
    """Return a start in UTC; a local one needs the zone, and is not known without."""
    try:
        clock = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if clock.tzinfo is None:
        if options.zone is None:
            return None
        clock = clock.replace(tzinfo=options.zone)
    try:
        return json_lines.in_utc(clock)
    except FieldError:
        return None


def _of_text(lines: Sequence[str], rejects: list[Reject]) -> list[Run]:
    """Return the runs whose output is in a text, in order; the lines before a table begin one."""
    runs = [Run()]
    operation = ""  # the test that was named last, in a header or a command line
    for number, whole in enumerate(lines, 1):
        stamp, text = json_lines.split_stamp(whole[:LINE_MAX_CHARS])
        line = PREFIX.sub("", text).lstrip()
        if BEGINNING.match(line) and runs[-1].results:
            runs.append(Run(nccl_version=runs[-1].nccl_version))
        run = runs[-1]
        if BEGINNING.match(line):
            run.started_at = run.started_at or stamp
        operation = _operation(line) or operation
        if match := VERSION.search(line):
            run.nccl_version = _version(match[1] or match[2])
        if match := DEVICE.match(line):
            run.ranks.add(int(match["rank"]))
            run.hosts.add(json_lines.printable(match["host"], 255))
            run.models.add(json_lines.printable(match["model"].strip(), TEXT_MAX_CHARS))
        elif LOOKS_LIKE_DEVICE.match(line):
            _reject(
                number, whole, f"{NOT_ALL} `# Rank N Pid N on HOST device N [BUS] MODEL`", rejects
            )
        elif line.startswith("#"):
            run.is_cpu_time |= " cputime " in line
        elif match := ROW.match(line):
            try:
                run.results += _halves(match)
                run.operation = run.operation or operation
            except FieldError as error:
                _reject(number, whole, str(error), rejects)
        elif LOOKS_LIKE_ROW.match(line):
            _reject(number, whole, f"{NOT_ALL} size, count, type and figures", rejects)
    return runs


def _reject(number: int, line: str, reason: str, rejects: list[Reject]) -> None:
    rejects.append(Reject(number, reason, json_lines.printable(line, 500)))


def _halves(row: re.Match[str]) -> list[Result]:
    """Return a row's results: (redop, root), then twice time, algbw, busbw and #wrong.

    `-I` adds four figures to each half and `-S` a time at the end; old versions have no root, and a
    replay of a trace leaves out the first half.
    """
    words = row["rest"].split()
    reduction = "none" if _is_figure(words[0]) else words.pop(0)
    figures = [word for word in words if _is_figure(word)]
    root = -1
    if len(figures) % 2:
        root_figure = _figure(figures.pop(0))
        root = -1 if root_figure is None else max(-1, min(int(root_figure), INT32_MAX))
    if len(figures) not in (4, 8, 16):
        raise FieldError("the row has not twice time, algbw, busbw and #wrong")
    half = max(4, len(figures) // 2)
    halves = [figures[:4]] if len(figures) == 4 else [figures[:4], figures[half : half + 4]]
    found = []
    for is_in_place, part in zip((len(halves) == 1, True), halves, strict=False):
        time_us, algbw, busbw, wrong = map(_figure, part)
        found.append(
            Result(
                int(row["size"]),
                int(row["count"]),
                row["dtype"],
                json_lines.printable(reduction, 30),
                root,
                is_in_place,
                time_us,
                algbw,
                busbw,
                None if wrong is None else int(wrong),
            )
        )
    return found


def _is_figure(word: str) -> bool:
    return (
        word == "N/A"
        or re.fullmatch(r"[+-]?\d{1,18}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?%?", word) is not None
    )


def _figure(word: str) -> float | None:
    if word == "N/A":
        return None
    figure = float(word.rstrip("%"))
    if not abs(figure) < FIGURE_MAX:  # also what is no number
        raise FieldError(f"{json_lines.printable(word, 40)} is out of range")
    return figure


def _operation(text: str) -> str:
    match = TEST.search(text)
    return OPERATIONS[match[1]] if match else ""


def _version(value: Any) -> str | None:
    """Return NCCL's version; as a number 22809 is 2.28.9."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if re.fullmatch(r"\d{5}", text):
        return f"{int(text) // 10000}.{int(text) // 100 % 100}.{int(text) % 100}"
    return json_lines.printable(text, 40) or None
