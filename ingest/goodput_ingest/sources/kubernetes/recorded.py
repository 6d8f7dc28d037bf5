"""Saved answers with kube-state-metrics series: job runs, holds and nodes of a Kubernetes cluster.

    curl -s http://prometheus:9090/api/v1/query \
        --data-urlencode 'query={__name__=~"kube_(pod|job|node)_.*|DCGM_FI_DEV_GPU_UTIL"}[6h]'

All series of one file are looked at together. Those of a GPU exporter map pods to GPUs;
they are not read as telemetry here (see the source `prometheus`). Objects of the API, as `kubectl
get ... -o json` writes them, are read as well.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from goodput_ingest.formats import files
from goodput_ingest.formats.parsed import Parsed
from goodput_ingest.prometheus_api.batches import batches, digest_of
from goodput_ingest.prometheus_api.plausible_samples import plausible_samples
from goodput_ingest.prometheus_api.recorded import KUBERNETES_NAME, answers, has_answer
from goodput_ingest.prometheus_api.replicas import without_doubles
from goodput_ingest.source import Batch, RecordedFile
from goodput_ingest.sources.kubernetes import objects
from goodput_ingest.sources.kubernetes.job_runs import parsed_job_runs
from goodput_ingest.sources.kubernetes.memory import PodMemory
from goodput_ingest.sources.kubernetes.nodes import parsed_nodes
from goodput_ingest.sources.kubernetes.observation import Observation
from goodput_queries.errors import IngestError
from goodput_queries.evidence.plausible import utc_now

CLUSTER_UNKNOWN = "kubernetes"  # job runs need one; --cluster says which it is


class KubernetesRecording(RecordedFile):
    """A file of answers with series of kube-state-metrics, or of objects of the API."""

    name: ClassVar[str] = "kubernetes"
    unread = ""  # what was found instead of objects with facts

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether this is an answer to a query about Kubernetes, or objects of its API."""
        is_answer = has_answer(head) and KUBERNETES_NAME.search(head) is not None
        return is_answer or objects.recognises(head)

    def extract(self) -> Iterator[Batch]:
        """Yield job runs, holds, nodes, their states and their GPUs."""
        if objects.recognises(files.head(self.path)):
            yield from self._of_objects()
            return
        found = list(answers(self.path))
        series, implausible = plausible_samples(
            [one for answer in found for one in answer.series],
            self.options.earliest,
            utc_now(),
            is_recorded=True,
        )
        seen = Observation.of(without_doubles(series))
        notes = [*(note for answer in found for note in answer.notes()), *implausible]
        if not seen.by_name and not notes:
            raise IngestError(
                f"{self.path}: there is no series of kube-state-metrics that is known; expected "
                "kube_pod_container_resource_requests, kube_pod_status_scheduled_time and others."
            )
        cluster = self.options.cluster or CLUSTER_UNKNOWN
        digest = digest_of(found, cluster)
        yield from batches(
            parsed(seen, cluster, PodMemory()),
            notes,
            self.name,
            str(self.path),
            digest,
            table="job_runs",
        )

    def _of_objects(self) -> Iterator[Batch]:
        found = objects.read(self.path)
        cluster = self.options.cluster or CLUSTER_UNKNOWN
        rows = found.parsed(cluster, self.options.observed_at)
        kept = [one for one in rows if not one.rows.is_empty()]
        if found.silent:
            kinds = ", ".join(sorted(found.silent))
            self.unread = (
                f"; {kinds} objects have no fact of the ledger. Those of `kubectl get pods,jobs -A "
                "-o json` have; nodes are read from kube-state-metrics"
            )
        digest = files.digest_of(_content(self.path), cluster, self.options.observed_at)
        yield from batches(kept, found.rejects, self.name, str(self.path), digest, table="job_runs")


def _content(path: Path) -> str:
    """Return a digest of the content of a file, as far as it can be read."""
    found = hashlib.sha256()
    with files.open_bytes(path) as file, contextlib.suppress(*files.BROKEN_OFF):
        while chunk := file.read(files.CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


def parsed(seen: Observation, cluster: str, memory: PodMemory) -> list[Parsed]:
    """Return all that an observation says, by raw table; the states of nodes come last."""
    found = [
        *parsed_job_runs(seen, cluster, memory),
        *parsed_nodes(seen, cluster),
    ]
    return [one for one in found if not one.rows.is_empty() or one.rejects]
