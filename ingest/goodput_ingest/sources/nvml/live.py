"""The GPUs of this machine, live: read in threads, parsed by the code that reads recordings."""

import hashlib
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files
from goodput_ingest.source import Batch, Reject
from goodput_ingest.sources.nvml.buffer import Buffer
from goodput_ingest.sources.nvml.gpu import Gpu
from goodput_ingest.sources.nvml.library import Nvml, NvmlError, text
from goodput_ingest.sources.nvml.machine import sees_all_processes
from goodput_ingest.sources.nvml.recorder import as_json
from goodput_ingest.sources.nvml.rows import SOURCE, NvmlRows
from goodput_ingest.sources.nvml.sampler import Sampler
from goodput_ingest.sources.nvml.watch import Clock, Rhythm
from goodput_queries.errors import IngestError

SAMPLE_MIN_S = 0.2  # GPM needs 0.1 s between snapshots, and threads are late at times
BUFFER_BYTES = 32 * 1024 * 1024  # an hour of eight GPUs at a reading a second
LINES_A_PART = 5_000
FIRST_ANSWER_S = 10.0
WHERE = (
    "Run this source on a machine with NVIDIA's driver, or record there with "
    "`python -m goodput_ingest.sources.nvml --out FILE` and ingest the file: "
    "`goodput ingest nvml FILE`."
)


@dataclass
class _Session:
    """State between polls: sampling threads, buffered lines, the last meta line."""

    sampler: Sampler
    buffer: Buffer
    rows: NvmlRows
    lines: int = 0


@dataclass(frozen=True)
class NvmlLive:
    """NVML on this machine.

    cluster, node: what the readings belong to; the node's own host name where unset.
    interval_s: how often what was read is loaded.
    sample_s: how often GPUs are read; slow_s: the same of counters, processes and the machine.
    module: a `pynvml`; None imports the one that is installed.
    """

    name: ClassVar[str] = SOURCE

    cluster: str | None = None
    node: str = field(default_factory=socket.gethostname)
    interval_s: float = 10.0
    sample_s: float = 1.0
    slow_s: float = 10.0
    module: Any = field(default=None, repr=False, compare=False)
    clock: Clock = field(default_factory=Clock, repr=False, compare=False)
    _sessions: list[_Session] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; raises IngestError."""
        if not SAMPLE_MIN_S <= self.sample_s <= self.slow_s:
            raise IngestError(
                f"nvml: sample_s is {self.sample_s:g} and slow_s {self.slow_s:g}; expected "
                f"{SAMPLE_MIN_S} s or more, and slow_s not less than sample_s."
            )

    @property
    def origin(self) -> str:
        """Return the polled origin, by which the status is stored."""
        return f"NVML on {self.node}"

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:  # noqa: ARG002 -- NVML knows no past
        """Yield what was read since the last poll; the first one begins to read.

        Raises IngestError, after what there is, where no GPU can be read.
        """
        session = self._session()
        session.sampler.settled.wait(FIRST_ANSWER_S)
        while True:
            taken = session.buffer.take(LINES_A_PART)
            if not taken.lines:
                break
            digest = hashlib.sha256(b"\n".join(taken.lines)).hexdigest()[: files.DIGEST_CHARS]
            part = files.Part(session.lines + 1, files.with_ends(taken.lines), digest)
            yield from session.rows.batches(part)
            if taken.dropped:
                yield self._dropped(taken.dropped, digest)
            session.buffer.forget(taken)
            session.lines += len(taken.lines)
        if not session.sampler.is_reading():
            why = "; ".join(session.sampler.problems()) or "NVML has not answered yet"
            raise IngestError(f"nvml: {why}. {WHERE}")

    def probe(self) -> list[str]:
        """Read every GPU once; return what they are and what they do not give."""
        try:
            nvml = Nvml(self.module)
            nvml.open()
        except NvmlError as error:
            raise IngestError(f"nvml: NVML cannot be used: {error.reason}. {WHERE}") from error
        try:
            return self._findings(nvml)
        except NvmlError as error:
            raise IngestError(f"nvml: {error.reason}.") from error
        finally:
            nvml.close()

    def close(self) -> None:
        """Stop reading; the next poll starts again."""
        while self._sessions:
            self._sessions.pop().sampler.stop()

    def _session(self) -> _Session:
        if not self._sessions:
            try:
                nvml = Nvml(self.module)
            except NvmlError as error:
                raise IngestError(f"nvml: {error.reason}. {WHERE}") from error
            buffer = Buffer(BUFFER_BYTES)
            rhythm = Rhythm(self.sample_s, self.slow_s)
            sampler = Sampler(
                nvml, lambda line: buffer.add(as_json(line)), self.node, rhythm, self.clock
            )
            rows = NvmlRows(self.cluster, self.origin)
            self._sessions.append(_Session(sampler, buffer, rows))
            sampler.start()
        return self._sessions[0]

    def _dropped(self, count: int, digest: str) -> Batch:
        """Return the note that lines were dropped while the store took none."""
        reason = f"{count} lines were dropped unread: the store took none for too long"
        note = Reject(None, reason)
        return Batch(
            "gpu_samples", pl.DataFrame(), SOURCE, self.origin, f"{digest}-dropped", (note,)
        )

    def _findings(self, nvml: Nvml) -> list[str]:
        count = int(nvml.ask("nvmlDeviceGetCount"))
        driver = text(nvml.ask("nvmlSystemGetDriverVersion"))
        found = [f"driver {driver}, {count} GPU(s)"]
        gpus_by_lack: dict[str, list[int]] = {}
        for index in range(count):
            try:
                gpu = Gpu(nvml, index, sees_all_processes=sees_all_processes())
                gpu.fast(self.clock.wall_s(), self.clock.steady_s())
                gpu.slow(self.clock.wall_s())
            except NvmlError as error:
                found.append(f"GPU {index} cannot be read: {error.reason}")
                continue
            meta, without = gpu.meta(), gpu.without()
            gpu.close()
            parts = f", {len(meta['instances'])} MIG instance(s)" if meta["instances"] else ""
            found.append(f"GPU {index}: {meta['name']}, {meta['uuid']}{parts}")
            for name, reason in without.items():
                gpus_by_lack.setdefault(f"{name}: {reason}", []).append(index)
        return found + [
            f"not given by GPU {', '.join(map(str, gpus))}: {lack}"
            for lack, gpus in gpus_by_lack.items()
        ]
