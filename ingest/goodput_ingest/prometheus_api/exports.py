"""Series as other tools of Prometheus's kind write them, brought into the form of its answers.

    promtool query range -o json http://prometheus:9090 'DCGM_FI_DEV_GPU_UTIL' > gpus.json
    curl -s http://victoria:8428/api/v1/export -d 'match[]={__name__=~"DCGM_FI_.*"}' > gpus.jsonl

promtool prints the list of series alone. VictoriaMetrics writes samples as they were scraped, a
series or a part of one a line: {"metric":{...},"values":[50],"timestamps":[1787234400000]}.
"""

import json
import re
from collections import defaultdict
from typing import Any, Final

import msgspec

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError

LISTED: Final = re.compile(rb'\s*\[\s*\{\s*"metric"\s*:\s*\{')
EXPORTED: Final = re.compile(
    rb'\s*\{"metric": ?\{[^{}]*\}, ?"(?:values": ?\[(?!\s*\[)|timestamps": ?\[)'
)
ENVELOPE: Final = b'{"status":"success","data":{"resultType":"matrix","result":%b}}'


class _Exported(msgspec.Struct):
    """A line of an export; values: null where there is none; timestamps: epoch milliseconds."""

    metric: dict[str, str]
    values: list[Any]
    timestamps: list[int]


_EXPORTED: Final = msgspec.json.Decoder(_Exported)


def is_export(head: bytes) -> bool:
    """Say whether a file begins as one of these forms."""
    return LISTED.match(head) is not None or EXPORTED.match(head) is not None


def as_answer(body: bytes) -> tuple[bytes, list[tuple[int, str]]]:
    """Return a body as an answer, as it is where it has another form; lines that are wrong, why."""
    if LISTED.match(body):
        return ENVELOPE % body, []
    if EXPORTED.match(body) is None:
        return body, []
    points: dict[tuple[tuple[str, str], ...], list[tuple[float, Any]]] = defaultdict(list)
    wrong: list[tuple[int, str]] = []
    for number, line in enumerate(body.splitlines(), 1):
        try:
            if line.strip():
                one = _EXPORTED.decode(line)
                if len(one.timestamps) != len(one.values):
                    raise FieldError(f"{len(one.values)} values, {len(one.timestamps)} timestamps")
                points[tuple(one.metric.items())] += [
                    (at / 1000, value)
                    for at, value in zip(one.timestamps, one.values, strict=True)
                    if value is not None
                ]
        except (ValueError, RecursionError) as error:
            reason = f"the line is not of an export: {error}"
            wrong.append((number, json_lines.printable(reason, 300)))
    series = [{"metric": dict(labels), "values": of} for labels, of in points.items()]
    return ENVELOPE % json.dumps(series).encode(), wrong
