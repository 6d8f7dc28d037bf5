"""Polls Slurm: accounting, GPUs of running jobs, nodes, their past states, reservations.

Of a cluster without accounting the jobs are those that its controller lists.

What its commands print is read by the code that reads their texts from files.

    [[collect]]
    source = "slurm"
    cluster = "lab"            # unset: as slurm.conf has it
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal
from zoneinfo import ZoneInfo

import polars as pl

from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_ingest.sources.slurm import fields
from goodput_ingest.sources.slurm.commands import Commands
from goodput_ingest.sources.slurm.events import RESERVATION_FIELDS
from goodput_ingest.sources.slurm.nodes import SINFO_FIELDS
from goodput_ingest.sources.slurm.texts import Slurm
from goodput_queries.errors import IngestError

SEPARATOR = "\x1f"
UNTIL = "now+30days"  # a waiting job shows only if it may start before the end that is asked for
NO_ACCOUNTING = re.compile(
    r"^AccountingStorageType\s*=\s*(?:\(null\)|accounting_storage/none)\s*$", re.MULTILINE
)
NUMBERED = re.compile(r"^slurm: (?:line|record|node|job) \d+")
NOTHING = re.compile(rb"\s*(?:No jobs in the system|No reservations in the system)?\s*")
VARYING = re.compile(r" Priority=| CPUAlloc=|\|\d+/\d+/\d+/\d+\|")  # of scontrol, and sinfo's CPUs
GRACE = timedelta(minutes=5)  # what just started or ended may stand in one listing alone


@dataclass(frozen=True)
class SlurmLive:
    """The Slurm cluster whose commands run here; fields are the keys of a `[[collect]]` table.

    interval_s: how often it is asked. backfill_s: how far back a first poll asks.
    overlap_s: how far before what is known each poll begins, since records change late.
    window_s: the time range of one `sacct` query, so that its answer is bounded.
    form: "json" asks with --json where the command can, "text" never does.
    """

    name: ClassVar[str] = "slurm"

    cluster: str | None = None
    folder: str = ""
    form: Literal["text", "json"] = "text"
    interval_s: float = 60.0
    timeout_s: float = 60.0
    backfill_s: float = 604_800.0
    overlap_s: float = 3_600.0
    window_s: float = 86_400.0

    @property
    def origin(self) -> str:
        """Return the name under which the store knows how far it has come."""
        return f"slurm:{self.cluster or 'this cluster'}"

    @property
    def _commands(self) -> Commands:
        return Commands(self.folder, self.timeout_s)

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield what is new since `reached`, less the overlap; see LiveSource.

        The controller is asked before the accounting: a record that runs there and is unknown to
        it has run away.
        """
        config = self._config()
        has_accounting = NO_ACCOUNTING.search(config) is None
        cluster = self.cluster or _cluster(config)
        begin = self._begin(reached, now)
        options = ReadOptions(cluster=cluster, zone=ZoneInfo("UTC"), observed_at=now)
        known = self._known_jobs() if has_accounting else set()
        for batch in self._listed_jobs(options):
            if not (has_accounting and batch.table == "job_runs"):
                yield batch
        yield from self._nodes(options)
        yield from self._read(options, "scontrol", "show", "reservation", "-o")
        if not has_accounting:
            return
        for what in (("event",), ("reservation", f"format={','.join(RESERVATION_FIELDS)}")):
            name, *form = what  # the controller forgets both once they are over
            since = f"start={_printed(begin)}"
            yield from self._read(options, "sacctmgr", "-P", "show", name, since, *form)
        for batch in self._accounting(begin, now, options):
            yield _without_runaways(batch, known, now)

    def probe(self) -> list[str]:
        """Return what is odd; raise IngestError where controller or accounting do not answer.

        A cluster without accounting is not odd.
        """
        config = self._config()
        if NO_ACCOUNTING.search(config) is not None:
            return []
        cluster = _cluster(config)
        asked = self.cluster or cluster
        tracked = self._commands.text("sacctmgr", "-n", "-P", "show", "tres", "format=Type,Name")
        findings = []
        if asked != cluster:
            findings.append(
                f"slurm.conf names the cluster {cluster}, [[collect]] calls it {asked}."
            )
        if "gres|gpu" not in tracked.split():
            findings.append(
                "accounting does not track GPUs: add AccountingStorageTRES=gres/gpu to slurm.conf."
            )
        return [f"{self.origin}: {finding}" for finding in findings]

    def _begin(self, reached: Mapping[str, datetime], now: datetime) -> datetime:
        known = reached.get(self.origin)
        if known is None:
            return now - timedelta(seconds=self.backfill_s)
        return min(known, now) - timedelta(seconds=self.overlap_s)

    def _config(self) -> str:
        return self._commands.text("scontrol", "show", "config")

    def _fields(self) -> list[str]:
        """Return the fields to ask for: one that sacct does not know fails the whole question."""
        known = set(self._commands.text("sacct", "-e").split())
        return [name for name in fields.ASKED if name in known]

    def _known_jobs(self) -> set[str]:
        """Return the raw ids of all jobs that the controller knows, ended ones included."""
        return set(self._commands.text("squeue", "-a", "-h", "-t", "all", "-o", "%A").split())

    def _accounting(self, begin: datetime, now: datetime, options: ReadOptions) -> Iterator[Batch]:
        fields = ",".join(self._fields())
        part = timedelta(seconds=self.window_s)
        while True:
            end = begin + part
            is_last = end >= now
            window = ("-S", _printed(begin), "-E", UNTIL if is_last else _printed(end))
            form = ("--json",) if self.form == "json" else (
                "-P", "--noconvert", f"--delimiter={SEPARATOR}", "-o", fields
            )  # fmt: skip
            yield from self._read(options, "sacct", "-a", "-D", *window, *form)
            if is_last:
                return
            begin = end

    def _listed_jobs(self, options: ReadOptions) -> Iterator[Batch]:
        is_json = self.form == "json"
        asked = ("squeue", "-a", "--json") if is_json else ("scontrol", "show", "job", "-d", "-o")
        yield from self._read(options, *asked)

    def _nodes(self, options: ReadOptions) -> Iterator[Batch]:
        if self.form == "json":
            yield from self._read(options, "sinfo", "-a", "--json")
            return
        columns = ",".join(f"{name}:{SEPARATOR}" for name in SINFO_FIELDS)
        with self._commands.answer("sinfo", "-N", "-a", "-h", "-O", columns) as file:
            _as_listing(file)
            yield from self._batches(file, options)

    def _read(self, options: ReadOptions, *arguments: str) -> Iterator[Batch]:
        with self._commands.answer(*arguments) as file:
            yield from self._batches(file, options)

    def _batches(self, file: Path, options: ReadOptions) -> Iterator[Batch]:
        with file.open("rb") as answer:
            if NOTHING.fullmatch(answer.read(1_000)):
                return
        for batch in Slurm(file, options).extract():
            rejects = [_without_counts(reject) for reject in batch.rejects]
            yield replace(batch, origin=self.origin, rejects=rejects)


def _cluster(config: str) -> str:
    """Return the name of the cluster in what `scontrol show config` prints."""
    found = re.search(r"^ClusterName\s*=\s*(\S+)", config, re.MULTILINE)
    if found is None:
        raise IngestError(
            "slurm: scontrol show config does not name the cluster. Name it with cluster."
        )
    return found[1]


def _printed(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _without_counts(reject: Reject) -> Reject:
    """Return a reject without what differs between polls: its line, how long a job ran, free CPUs.

    So a row that every poll rejects is stored once.
    """
    content = VARYING.split(reject.content, maxsplit=1)[0]
    if SEPARATOR in content:
        content = SEPARATOR.join(content.split(SEPARATOR)[: fields.STABLE])
    return Reject(None, NUMBERED.sub("slurm: a row", reject.reason), content)


def _as_listing(file: Path) -> None:
    """Make the listing of nodes one with | between fields: a reason may hold that character."""
    rows = file.read_bytes().replace(b"|", b"/").replace(f"{SEPARATOR}\n".encode(), b"\n")
    header = "|".join(SINFO_FIELDS.values())
    file.write_bytes(header.encode() + b"\n" + rows.replace(SEPARATOR.encode(), b"|"))


def _without_runaways(batch: Batch, known: set[str], now: datetime) -> Batch:
    """Reject records that run by the accounting while the controller does not know the job.

    They would hold their GPUs for ever: Slurm calls them runaway jobs.
    """
    if batch.table != "job_runs":
        return batch
    runs = (pl.col("state") == "RUNNING") & pl.col("end_at").is_null()
    is_runaway = (
        runs & (pl.col("start_at") < now - GRACE) & ~pl.col("job_id_raw").is_in(list(known))
    )
    gone = batch.rows.filter(is_runaway.fill_null(value=False))
    rejects = [
        Reject(
            None,
            f"slurm: job {job} runs by the accounting, and the controller does not know it. "
            "See sacctmgr show runawayjobs.",
            f"{job} since {start}",
        )
        for job, start in gone.select("job_id_raw", "start_at").iter_rows()
    ]
    kept = batch.rows.filter(~is_runaway.fill_null(value=False))
    return replace(batch, rows=kept, rejects=[*batch.rejects, *rejects])
