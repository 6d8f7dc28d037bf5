"""Snapshots of nodes, as `goodput snapshot` writes them: a line of JSON each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.formats.parsed import Parsed, frame
from goodput_ingest.source import Batch, RecordedFile
from goodput_queries.errors import IngestError

MARK = "goodput_snapshot"
VERSION = 1
NODE_SETTINGS = raw_tables.columns("node_settings", "source")
SETTINGS_MAX = 2_000  # of one snapshot
NAME_MAX_CHARS, VALUE_MAX_CHARS = 200, 500
# what every process or container may have another value of; the rest is the node's
OF_A_PROCESS = ("env", "limit", "process.", "cgroup.")
OF_A_CONTAINER = ("mount", "net.", "os.", "fabric.manager")


class NodeSnapshot(RecordedFile):
    """A file of snapshots; those of several nodes may be put into one."""

    name: ClassVar[str] = "node-snapshot"
    is_followed: ClassVar[bool] = True

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether an object of the first lines is a snapshot."""
        return any(f'"{MARK}"'.encode() in line for line in json_lines.objects(head))

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.node_settings`, part by part; lines that cannot be read are rejects."""
        head = files.head(self.path)
        if head.strip() and not self.recognises(self.path, head):
            raise IngestError(f"{self.path}: this is no snapshot of `goodput snapshot`.")
        for part in files.parts(self.path):
            rows: list[dict[str, Any]] = []

            def take(line: str, rows: list[dict[str, Any]] = rows) -> None:
                rows += self._rows(json_lines.record(line))

            rejects = json_lines.each_line(part, take, f"{self.name}: ")
            digest = files.digest(part, self.options.cluster)
            parsed = Parsed("node_settings", frame(rows, NODE_SETTINGS), rejects)
            yield parsed.batch(source=self.name, origin=str(self.path), digest=digest)

    def _rows(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a row for each setting of a snapshot; FieldError says what is wrong with it."""
        if fields.get(MARK) != VERSION:
            raise FieldError(f"{MARK} is not {VERSION}, the only version that is read")
        if (node := json_lines.text(fields, "node")) is None:
            raise FieldError("node is missing")
        common = {
            "cluster": self.options.cluster,
            "node": node,
            "ts": json_lines.moment(fields, "ts"),
            "run_id": json_lines.text(fields, "run_id") or "",
        }
        seen_from = "host" if fields.get("is_container") is False else "process"
        settings, unknown = _texts(fields, "settings"), _texts(fields, "unknown")
        if not settings and not unknown:
            raise FieldError("it has no settings")
        return [
            {
                **common,
                "setting": json_lines.printable(name, NAME_MAX_CHARS),
                "value": settings.get(name),
                "unknown_because": None if name in settings else unknown[name],
                "belongs_to": _belongs_to(name, seen_from),
            }
            for name in sorted({*settings, *unknown})
        ]


def _belongs_to(setting: str, seen_from: str) -> str:
    if setting.startswith(OF_A_PROCESS):
        return "process"
    return seen_from if setting.startswith(OF_A_CONTAINER) else "node"


def _texts(fields: dict[str, Any], name: str) -> dict[str, str]:
    """Return an object of texts, capped; FieldError says what it is instead."""
    found = fields.get(name, {})
    if not isinstance(found, dict):
        raise FieldError(f"{name} is {json_lines.kind(found)}, expected an object")
    if len(found) > SETTINGS_MAX:
        raise FieldError(f"{name} has {len(found)} entries, at most {SETTINGS_MAX} are read")
    texts = {key: json_lines.text(found, key, VALUE_MAX_CHARS) for key in found}
    return {key: value for key, value in texts.items() if value is not None}
