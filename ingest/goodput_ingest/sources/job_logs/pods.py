"""Divides what `kubectl logs --prefix` or `stern` wrote of several pods: each has its own log."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.sources.job_logs.lines import DATED, STERN, uncoloured

PODS_MAX: Final = 500  # lines of more stay together
KUBECTL: Final = r"\[pod/(?P<pod>[^/\]\s]{1,253})/[^\]\s]{1,63}\]"
LABEL: Final = re.compile(
    rf"(?m:^)(?:{json_lines.STAMP})?(?:{KUBECTL}|{STERN}(?={DATED}))".encode()
)


def of_pods(part: Part, known: set[str]) -> Iterator[tuple[str, Part]]:
    """Yield the lines of each pod, the others empty so that lines keep their numbers.

    Lines without a label are of the pod '', known: pods of the parts before.
    """
    data = uncoloured(part.data)
    if LABEL.search(data) is None:
        yield "", part
        return
    lines: dict[str, list[bytes]] = {}
    for number, line in enumerate(data.split(b"\n")[:-1]):
        label = LABEL.match(line)
        pod = "" if label is None else (label["pod"] or label["name"]).decode("utf-8", "replace")
        if pod not in lines and pod not in known and len(known) >= PODS_MAX:
            pod = ""
        known.add(pod)
        own = lines.setdefault(pod, [])
        own += [b""] * (number - len(own))
        own.append(line)
    for pod, own in lines.items():
        yield pod, replace(part, data=b"".join(line + b"\n" for line in own))
