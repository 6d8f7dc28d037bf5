"""GPUs of each pod, where a GPU exporter's series have the pod as a label."""

from collections import defaultdict
from collections.abc import Sequence

from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.gpu_series import normalised
from goodput_ingest.sources.kubernetes.pods import Pod


class GpuNames:
    """GPUs by pod and time: labels may linger half an hour after a pod has gone."""

    def __init__(self, series: Sequence[Series]) -> None:
        """Take the series of GPU exporters."""
        self._by_pod: dict[str, dict[tuple[str, str], tuple[int, int]]] = defaultdict(dict)
        for one, of in zip(series, normalised(series), strict=True):
            if of["pod"] and of["gpu_uuid"]:
                gpu = of["gpu_uuid"], of["gpu_instance"]
                first, last = int(one.times_ms[0]), int(one.times_ms[-1])
                seen = self._by_pod[of["pod"]].get(gpu, (first, last))
                self._by_pod[of["pod"]][gpu] = min(seen[0], first), max(seen[1], last)

    def of(self, pod: Pod) -> list[tuple[str, str]]:
        """Return (UUID, instance) of the pod's GPUs, seen while it ran; none unless all are named.

        Two pods of one name (a StatefulSet's, one after the other) differ in their time.
        """
        start_ms = pod.start_ms or 0
        end_ms = pod.end_ms if pod.end_ms is not None else float("inf")
        found = sorted(
            gpu
            for gpu, (first, last) in self._by_pod.get(f"{pod.namespace}/{pod.name}", {}).items()
            if last >= start_ms and first < end_ms
        )
        return found if len(found) == pod.gpu_count else []
