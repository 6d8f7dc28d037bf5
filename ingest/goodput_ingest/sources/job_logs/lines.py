"""A line of a job's log, freed of what others put around it: colours, progress bars, prefixes.

Collectors and launchers label lines: a moment (`kubectl logs --timestamps`, container runtimes), a
task (`srun --label`, `mpirun --tag-output`), a rank (`[rank3]:` of PyTorch, `[default3]:` of
torchrun), a role (`torchx`), a pod (`kubectl logs --prefix`), a stream (`logcli`), an actor; where
a time or a rank follows, also a pod of `stern`, a host (`pdsh`), a service (`docker compose`) and
syslog's header. The label `[rank3]:` is the rank in the job; the others number tasks of a node or
of a launcher and say nothing of ranks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from goodput_ingest.formats.json_text import json_lines

TEXT_MAX_CHARS = 20_000  # a log line that says something is shorter; beyond, it is data
BAR = re.compile(r"\d/\d+ \[[\d:]+<")  # of tqdm
LABELS_MAX = 8  # labels around labels
COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
CUT = re.compile(r"\S{20,40} std(?:out|err) P ")  # a container runtime cuts lines of over 16 KB
COLOUR_BYTES = re.compile(COLOUR.pattern.encode())
DATED = r"\[?20\d\d-\d\d-\d\d[ T]\d\d:\d\d.{12}|\[(?:rank|default)\d"
# of a pod and its container, where a time or a rank follows; names of pods have a hyphen
STERN = r"(?P<name>[a-z0-9][a-z0-9.]{0,60}-[a-z0-9.-]{0,190}) [a-z0-9][a-z0-9-]{0,62} "
LABEL = re.compile(
    r"\s*(?:\[rank(?P<rank>\d{1,7})\]:(?=[ \[]|\d{4}-)|\[default\d{1,5}\]:|\d{1,7}: "
    r"|\[(?:prterun-[\w.-]{1,100}@)?\d{1,7},\d{1,7}\]<std(?:out|err)>:|\[pod/[^\]\s]{1,300}\]"
    r'|\{(?:\w{1,200}="(?:[^"\\]|\\.){0,1000}"(?:, )?){0,30}\}(?= )'
    r"|\(\w{1,60} pid=\d{1,10}(?:, ip=[^)\s]{1,60})?\)|[A-Za-z][\w-]{0,60}/\d{1,5} (?=[\[A-Z]|20)"
    rf"|{STERN}(?={DATED})|\[\d{{1,7}}\] (?={DATED})"
    rf"|[\w.-]{{1,100}}(?::|\s{{1,20}}\|) (?={DATED})"
    r"|[A-Z][a-z]{2} [ \d]\d [\d:]{8} [\w.-]{1,64} [\w./-]{1,60}(?:\[\d{1,8}\])?: "
    rf"(?={DATED})"
    r")\s?"
)


@dataclass(frozen=True)
class Line:
    """A line of a process: its number in the file, its text, and the labels of its collector.

    at: the moment of a collector's label, naive UTC. rank: of a label `[rank3]:`.
    bar: the progress bar that stood there when the text was printed over it.
    """

    number: int
    text: str
    at: datetime | None = None
    rank: int | None = None
    bar: str = ""


def uncoloured(text: bytes) -> bytes:
    """Return the text of a file without the colours that a terminal shows."""
    return COLOUR_BYTES.sub(b"", text) if b"\x1b" in text else text


def cleaned(number: int, raw: str) -> Iterator[Line]:
    """Yield what a line of the file shows: a redrawn progress bar shows its last state only."""
    raw = raw[:TEXT_MAX_CHARS] if "\r" not in raw else raw
    if "\x1b" in raw:
        raw = COLOUR.sub("", raw)
    if "\r" in raw and CUT.match(raw):
        raw = raw[: raw.rindex("\r")]  # the state that was cut goes on in the next line
    at, raw = json_lines.split_stamp(raw)
    states = [text for text in raw.split("\r") if text.strip()] if "\r" in raw else [raw]
    bar = next(filter(BAR.search, reversed(states[:-1])), "")[:TEXT_MAX_CHARS]
    for text in states[-1:]:
        rank, rest = None, text[:TEXT_MAX_CHARS]
        for _ in range(LABELS_MAX):
            label = LABEL.match(rest)
            if label is None:
                break
            rank = int(label["rank"]) if label["rank"] else rank
            rest = rest[label.end() :]
            if at is None:
                at, rest = json_lines.split_stamp(rest)
        if rest.strip():
            yield Line(number, rest, at, rank, bar)
