"""Kubernetes out of a Prometheus server: what kube-state-metrics showed since the last poll."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from goodput_ingest.formats.json_text.json_lines import EPOCH
from goodput_ingest.prometheus_api.batches import batches, digest_of
from goodput_ingest.prometheus_api.bulk import epoch_ms, samples
from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.clusters import mixed_clusters
from goodput_ingest.prometheus_api.discovery import Discovery
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_ingest.prometheus_api.plausible_samples import plausible_samples
from goodput_ingest.prometheus_api.replicas import REPLICA_LABELS, without_doubles
from goodput_ingest.source import Batch
from goodput_ingest.sources.kubernetes.memory import PodMemory
from goodput_ingest.sources.kubernetes.nodes import PIECE_MS
from goodput_ingest.sources.kubernetes.observation import METRICS, NEEDED, Observation
from goodput_ingest.sources.kubernetes.recorded import CLUSTER_UNKNOWN, parsed
from goodput_queries.evidence.plausible import EARLIEST

POD_OF_GPU = "DCGM_FI_DEV_GPU_UTIL"  # its labels say which pod has which GPU
WINDOW_MAX_MS = 6 * PIECE_MS
CLAIMS = "kube_pod_resourceclaim_info"
CLAIMED = (
    "GPUs that pods have by ResourceClaims (DRA) are in no job run: their number is not said. "
    "`kubectl get pods,resourceclaims,resourceslices -A -o json` says it, for `goodput ingest`."
)


@dataclass(frozen=True, kw_only=True)
class Kubernetes(Endpoint):
    """A server that scrapes kube-state-metrics.

    cluster: what to call the cluster.
    lookback_s: how far back the first poll of a process reads, beyond what the store has: pods of
    a gang that have gone since are in no later answer.
    """

    name: ClassVar[str] = "kubernetes"

    cluster: str = CLUSTER_UNKNOWN
    interval_s: float = 60.0
    lookback_s: float = 86_400.0
    overlap_s: float = 300.0
    settle_s: float = 5.0
    replica_labels: tuple[str, ...] = REPLICA_LABELS
    memory: PodMemory = field(default_factory=PodMemory, init=False, repr=False, compare=False)

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield job runs, holds and nodes since the store was there, an hour at a time."""
        end_ms = epoch_ms(now) - round(self.settle_s * 1000)
        since = reached.get(self.origin)
        back_s = self.overlap_s if self.memory.pods and since is not None else self.lookback_s
        from_ms = end_ms if since is None else min(epoch_ms(since), end_ms)
        start_ms = (from_ms - round(back_s * 1000)) // PIECE_MS * PIECE_MS
        is_continued = since is not None
        with Client(self) as client:
            while start_ms < end_ms:
                stop_ms = min(start_ms + WINDOW_MAX_MS, end_ms)
                yield from self._window(client, start_ms, stop_ms, is_continued=is_continued)
                # what still held at the end of a window gets its end from the next
                start_ms = stop_ms - PIECE_MS if stop_ms < end_ms else end_ms
                is_continued = True

    def probe(self) -> list[str]:
        """Return which series are missing that holds and states of nodes need."""
        now_s = datetime.now(UTC).timestamp()
        with Discovery(self) as discovery, Client(self) as client:
            discovery.check()
            names = set(discovery.metric_names(now_s - 3_600, now_s))
            mixed = mixed_clusters(client, sorted(names & NEEDED.keys()), self.matchers)
        if names.isdisjoint(METRICS):
            return [f"{self.origin}: there are no series of kube-state-metrics in the last hour."]
        missing = [
            f"{name} is missing; {why}." for name, why in NEEDED.items() if name not in names
        ]
        claimed = [CLAIMED] if CLAIMS in names else []
        return [f"{self.origin}: {finding}" for finding in (*mixed, *missing, *claimed)]

    def _window(
        self, client: Client, start_ms: int, end_ms: int, *, is_continued: bool
    ) -> Iterator[Batch]:
        answers = list(samples(client, [*METRICS, POD_OF_GPU], self.matchers, start_ms, end_ms))
        series, implausible = plausible_samples(
            [one for answer in answers for one in answer.series],
            EARLIEST,
            EPOCH + timedelta(milliseconds=end_ms),
        )
        seen = Observation.of(
            without_doubles(series, self.replica_labels), is_continued=is_continued
        )
        notes = [*(note for answer in answers for note in answer.notes()), *implausible]
        digest = digest_of(answers, self.cluster, sorted(self.memory.pods))
        yield from batches(
            parsed(seen, self.cluster, self.memory),
            notes,
            self.name,
            self.origin,
            digest,
            table="job_runs",
        )
