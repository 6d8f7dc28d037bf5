"""Takes off how collectors wrap lines, and divides those of several pods: each has its own log.

`kubectl logs --prefix`, `stern` and `logcli` of Loki write lines of pods.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from goodput_ingest.formats import files
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.sources.job_logs.lines import DATED, STERN, uncoloured

WRAPPED: Final = re.compile(rb"(?m:^)(?:%b)" % json_lines.WRAPPED.pattern.encode())
PODS_MAX: Final = 500  # lines of more stay together
KUBECTL: Final = r"\[pod/(?P<pod>[^/\]\s]{1,253})/[^\]\s]{1,63}\]"
LOKI: Final = (
    r'\{(?:[^"}\n]{1,200}"(?:[^"\\\n]|\\.){0,1000}"){0,30}?(?:, )?pod="(?P<loki>[^"\s]{1,253})"'
)
OF_LOKI: Final = re.compile(rf"(?m:^){json_lines.STAMP}(?=\{{)".encode())
LABEL: Final = re.compile(
    rf"(?m:^)(?:{json_lines.STAMP})?(?:{KUBECTL}|{STERN}(?={DATED})|{LOKI})".encode()
)


def unwrapped(data: bytes) -> bytes:
    """Return lines that a collector wrapped in JSON as they were, behind their times and pods."""
    if b'{"' not in data or WRAPPED.search(data) is None:
        return data
    lines = (line.decode("utf-8", files.WINDOWS) for line in data.split(b"\n"))
    return "\n".join(map(json_lines.unwrapped, lines)).encode("utf-8", "replace")


def is_newest_first(head: bytes) -> bool:
    """Say whether most lines of Loki are older than the line above, as it answers by default."""
    lines = (found[0].decode() for found in OF_LOKI.finditer(head))
    stamps = [at for line in lines if (at := json_lines.split_stamp(line)[0]) is not None]
    falls = sum(later < earlier for earlier, later in pairwise(stamps))
    return falls > len(stamps) / 2


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
        named = () if label is None else (label["pod"], label["name"], label["loki"])
        pod = next(filter(None, named), b"").decode("utf-8", "replace")
        if pod not in lines and pod not in known and len(known) >= PODS_MAX:
            pod = ""
        known.add(pod)
        own = lines.setdefault(pod, [])
        own += [b""] * (number - len(own))
        own.append(line)
    for pod, own in lines.items():
        yield pod, replace(part, data=b"".join(line + b"\n" for line in own))
