"""Metrics of GPUs, hosts and engines out of a Prometheus server, caught up from the store.

Of GPUs the raw samples are read, of hosts and engines their values on a grid (`host_series`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import ClassVar

from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.gpu_metrics import Memory, is_gpu_metric
from goodput_ingest.host_metrics import is_host_metric
from goodput_ingest.prometheus_api.answer import Answer
from goodput_ingest.prometheus_api.batches import batches, digest_of
from goodput_ingest.prometheus_api.bulk import epoch_ms, grid_samples, samples, selector
from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.clusters import NAMES_ASKED, mixed_clusters
from goodput_ingest.prometheus_api.discovery import Discovery
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_ingest.prometheus_api.gpu_series import parsed_gpu_rows
from goodput_ingest.prometheus_api.host_series import host_samples, parsed_host_rows
from goodput_ingest.prometheus_api.other_series import OtherSeries, is_read, of_packages
from goodput_ingest.prometheus_api.replicas import REPLICA_LABELS, without_doubles
from goodput_ingest.source import Batch

METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
READ = (is_gpu_metric, is_host_metric, is_read)
CLOCKS_DIFFER_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Prometheus(Endpoint):
    """A server that scrapes GPU exporters, and node_exporter and serving engines if there are any.

    cluster: whose GPUs and hosts these are; unset: found through their nodes.
    backfill_s: how far back a first poll reads. overlap_s: how much of what was read each poll
    reads again, for samples that came late. settle_s: how long a scrape may take until it shows.
    host_interval_s: distance of the readings of hosts; 0: none are read. serving_interval_s: the
    same of serving engines. serving_histogram_interval_s: of their histograms.
    """

    name: ClassVar[str] = "prometheus"

    cluster: str | None = None
    interval_s: float = 30.0
    backfill_s: float = 86_400.0
    overlap_s: float = 300.0
    settle_s: float = 5.0
    host_interval_s: float = 60.0
    serving_interval_s: float = 60.0
    serving_histogram_interval_s: float = 300.0
    replica_labels: tuple[str, ...] = REPLICA_LABELS
    memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield what the server has since the store was there, oldest first.

        No answer spans more than the overlap: whoever was killed between two tables of one begins
        before it again, so nothing is missing and repeated rows change nothing.
        """
        to = now - timedelta(seconds=self.settle_s)
        since = reached.get(self.origin)
        start = (
            to - timedelta(seconds=self.backfill_s)
            if since is None
            else min(since, to) - timedelta(seconds=self.overlap_s)  # a clock may have run ahead
        )
        names = self._names(start, to)
        gpu_names = [name for name in names if is_gpu_metric(name)]
        step_ms = round(1000 * self.host_interval_s)
        host_names = [name for name in names if is_host_metric(name)] if step_ms else []
        others = [(one, self._by_step(one, names)) for one in of_packages()]
        gpu_rows = partial(parsed_gpu_rows, source=self.name, memory=self.memory)
        with Client(self) as client:
            for start_ms, end_ms in spans(epoch_ms(start), epoch_ms(to), self.overlap_s):
                of_gpus = samples(client, gpu_names, self.matchers, start_ms, end_ms)
                yield from self._batches(list(of_gpus), gpu_rows, "gpu_samples")
                of_hosts = host_samples(
                    client, host_names, self.matchers, start_ms, end_ms, step_ms
                )
                yield from self._batches(list(of_hosts), parsed_host_rows, "node_samples")
                for one, by_step in others:
                    answers = chain.from_iterable(
                        grid_samples(client, read, self.matchers, start_ms, end_ms, step_ms)
                        for step_ms, read in by_step
                    )
                    yield from self._batches(list(answers), one.parsed, one.TABLE)

    def probe(self) -> list[str]:
        """Return what is odd about the server: its targets, its metrics, its clock."""
        with Discovery(self) as discovery, Client(self) as client:
            discovery.check()
            findings = self._down(discovery, client)
            clock = client.query("vector(time())").series
            now = datetime.now(UTC).replace(tzinfo=None)
            names = self._gpu_names(now - timedelta(hours=1), now)
            if not names:
                findings.append(
                    "there is no metric of a GPU exporter in the last hour; is dcgm-exporter "
                    "among its targets?"
                )
            findings += mixed_clusters(client, names, self.matchers)
        if clock and abs(ahead_s := clock[0].values[0] - epoch_ms(now) / 1000) > CLOCKS_DIFFER_S:
            findings.append(f"its clock is {ahead_s:+.0f} s off ours; synchronise both with NTP.")
        return [f"{self.origin}: {finding}" for finding in findings]

    def _down(self, discovery: Discovery, client: Client) -> list[str]:
        """Return a sentence for each GPU exporter that is down; other targets are not ours.

        A GPU exporter is what gave metrics of GPUs within a day, or is named as one.
        """
        down = discovery.down_targets()
        if not down:
            return []
        now = datetime.now(UTC).replace(tzinfo=None)
        ours: set[tuple[str, str]] = set()
        if names := self._gpu_names(now - timedelta(days=1), now):
            chosen = selector(names[:NAMES_ASKED], self.matchers)
            named = client.query(f"group by (job, instance) (last_over_time({chosen}[1d]))").series
            ours = {(one.labels.get("job", ""), one.labels.get("instance", "")) for one in named}
        return [one.sentence for one in down if one.is_named_so or one.origin in ours]

    def _names(self, start: datetime, end: datetime) -> list[str]:
        with Discovery(self) as discovery:
            names = discovery.metric_names(epoch_ms(start) / 1000, epoch_ms(end) / 1000)
        return sorted(
            name
            for name in names
            if METRIC_NAME.fullmatch(name) and any(is_one(name) for is_one in READ)
        )

    def _by_step(self, one: OtherSeries, names: Sequence[str]) -> list[tuple[int, list[str]]]:
        """Return the names that a package reads, by the distance of their values; 0: none."""
        read = [name for name in names if one.is_read(name)]
        steps_s = {False: self.serving_interval_s, True: self.serving_histogram_interval_s}
        return [
            (round(1000 * step_s), [n for n in read if one.is_histogram_part(n) is is_part])
            for is_part, step_s in steps_s.items()
            if step_s > 0
        ]

    def _gpu_names(self, start: datetime, end: datetime) -> list[str]:
        return [name for name in self._names(start, end) if is_gpu_metric(name)]

    def _batches(
        self, answers: Sequence[Answer], parse: Callable[..., list[Parsed]], table: str
    ) -> Iterator[Batch]:
        series = without_doubles(
            chain.from_iterable(a.series for a in answers), self.replica_labels
        )
        parsed = parse(series, cluster=self.cluster)
        notes = [note for answer in answers for note in answer.notes()]
        digest = digest_of(answers, self.cluster)
        yield from batches(parsed, notes, self.name, self.origin, digest, table=table)


def spans(start_ms: int, end_ms: int, at_most_s: float) -> Iterator[tuple[int, int]]:
    """Yield pieces end to end, cut where every poll cuts them, none longer."""
    piece_ms = round(at_most_s * 1000)
    while start_ms < end_ms:
        stop_ms = min(end_ms, (start_ms // piece_ms + 1) * piece_ms)
        yield start_ms, stop_ms
        start_ms = stop_ms
