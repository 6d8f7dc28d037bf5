"""Power readings of whole servers from the power folders of MLPerf submissions.

:::MLLOG {"time_ms": 1715341080337, "key": "power_reading", "value": 2090, ...}

A series begins with `power_measurement_start` and ends with `power_measurement_stop`; both become
rows without a reading, since the first reading covers back to the start. Some logs give the stop
the start's time: it is rejected, and the last reading is the end, which is how the published
energy comes out. `interconnect_power_est` is one estimate for a whole network, kept under the name
of its file; its time may lie years away from the run, so join it by its folder.

`conversion_eff` is a factor of the meter (1 where there is none): MLCommons' scorer multiplies the
readings by it. It holds for the readings that follow it in the file.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.formats.json_text.mllog_lines import (
    IN_HEAD,
    is_power,
    marked,
    place_of_power,
    time_ms,
)
from goodput_ingest.formats.parsed import Parsed, frame
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_queries.errors import IngestError

READINGS = ("power_reading", "interconnect_power_est")
POWER_MAX_W = 1e8
CONVERSION_MAX = 10.0  # a factor near 1; more is a percentage or a mistake
NODE_SAMPLES = raw_tables.only("node_samples", "node", "ts", "power_w")


class NodePower(RecordedFile):
    """A power meter's readings of one node (or of the network) during one run."""

    name: ClassVar[str] = "node-power"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether lines carry the benchmark's mark and are power readings."""
        return IN_HEAD.search(head) is not None and is_power(head)

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.node_samples`, part by part."""
        if not is_power(files.head(self.path)):
            raise IngestError(f"{self.path}: no line is a power reading (:::MLLOG power_reading).")
        node, start_ms, conversion = self._node(), None, 1.0
        for part in files.parts(self.path):
            rows: list[dict[str, Any]] = []
            rejects: list[Reject] = []
            for number, line in enumerate(part.lines, part.first_line):
                try:
                    if (found := marked(line)) is None:
                        continue
                    if json_lines.text(found[1], "key") == "conversion_eff":
                        conversion = _conversion(found[1])
                        continue
                    at_ms, power_w, key = _reading(found[1])
                    if key == "power_measurement_start":
                        start_ms = at_ms
                    elif key == "power_measurement_stop" and start_ms == at_ms:
                        raise FieldError(
                            "power_measurement_stop carries the start's time: the last reading is "
                            "taken as the stop"
                        )
                    rows.append(
                        {
                            "node": node,
                            "ts": EPOCH + timedelta(milliseconds=at_ms),
                            "power_w": None if power_w is None else power_w * conversion,
                        }
                    )
                except FieldError as error:
                    rejects.append(Reject(number, str(error), json_lines.printable(line, 500)))
            rejects += part.cut
            parsed = Parsed("node_samples", _one_value_a_moment(rows), rejects)
            yield parsed.batch(
                source=self.name, origin=str(self.path), digest=files.digest(part, node)
            )

    def _node(self) -> str:
        if self.options.node is not None:
            return self.options.node
        place = place_of_power(self.path)
        if place is None:
            raise IngestError(
                f"{self.path}: the file does not say whose readings these are. Name the node with "
                "--node, or read it from its submission (results/.../power/<run>/node_1.txt)."
            )
        return place.node(self.path.resolve().stem)


def _reading(event: dict[str, Any]) -> tuple[int, float | None, str]:
    """Return moment, watts (None at the ends of the measurement) and key; raises FieldError."""
    key = json_lines.text(event, "key") or ""
    at_ms = time_ms(event)
    if key in ("power_measurement_start", "power_measurement_stop"):
        return at_ms, None, key
    if key not in READINGS:
        raise FieldError(f"{key!r} is not a power reading")
    power_w = json_lines.number(event, "value", 0, POWER_MAX_W)
    if power_w is None:
        raise FieldError("value is missing, a power reading needs it")
    return at_ms, power_w, key


def _conversion(event: dict[str, Any]) -> float:
    found = json_lines.number(event, "value", 0, CONVERSION_MAX)
    if not found:
        raise FieldError("value is missing or 0, conversion_eff needs a factor")
    return found


def _one_value_a_moment(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return the rows, those of one moment with one value: the greatest reading.

    At the start or the stop that is the reading, where there is one; it is one row then. Readings
    that repeat a time stay as many, so that loading counts them as repeats.
    """
    found = (
        frame(rows, NODE_SAMPLES)
        .group_by("node", "ts", maintain_order=True)
        .agg(pl.col("power_w").max(), pl.col("power_w").count().clip(1).alias("readings"))
    )
    return found.select(pl.exclude("readings").repeat_by("readings").explode())
