"""Pods of gangs that are still at work, over the polls of one process.

A row describes a whole job run, so a deleted pod must be kept while its gang continues.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from goodput_ingest.sources.kubernetes.pods import Pod


@dataclass
class PodMemory:
    """Pods by uid."""

    pods: dict[str, Pod] = field(default_factory=dict)

    def with_earlier(
        self, has_ended: Callable[[int], bool], found: Iterable[Pod]
    ) -> tuple[list[Pod], set[str]]:
        """Return the pods with those of before, and the uids of which there is news.

        has_ended: whether a pod that is no longer seen has ended when it was seen last (epoch ms).
        """
        now = {pod.uid: pod for pod in found}
        news = set(now)
        for uid, earlier in self.pods.items():
            if (pod := now.get(uid)) is not None:
                pod.first_seen_ms = min(pod.first_seen_ms, earlier.first_seen_ms)
                pod.last_seen_ms = max(pod.last_seen_ms, earlier.last_seen_ms)
                if earlier.end_ms is not None and pod.end_ms is not None:
                    pod.end_ms = min(pod.end_ms, earlier.end_ms)
                continue
            if earlier.end_ms is None and has_ended(earlier.last_seen_ms):
                earlier.end_ms = max(earlier.last_seen_ms, earlier.start_ms or 0)
                news.add(uid)
            now[uid] = earlier
        self.pods = now
        ordered = sorted(now.values(), key=lambda p: (p.submit_ms, p.namespace, p.name, p.uid))
        return ordered, news

    def forget(self, pods: Iterable[Pod]) -> None:
        """Drop pods of a job run that has ended and was yielded."""
        for pod in pods:
            self.pods.pop(pod.uid, None)
