"""Pseudonyms for the names in a bundle: equal names stay equal, within one bundle.

Each bundle has a key of its own that is written nowhere, so that pseudonyms of two bundles cannot
be compared, and nobody can try names. Numbers of jobs stay: rules match them between sources.
"""

import hashlib
import re
import secrets
from collections.abc import Callable
from typing import Any

import polars as pl

Mapping = Callable[[str], str]
NODES = frozenset({"node", "host", "nodes", "requested_nodes", "excluded_nodes"})
NAMES = frozenset(
    {
        *("account", "user_name", "user_id", "cancelled_by", "owner", "container", "pod_uid"),
        *("cluster", "partition", "partitions", "qos", "reservation", "name"),
        *("job_name", "run_id", "comm_name", "group_name", "group_description"),
        *("rack", "rack_row", "feed", "trace_id", "dump_set", "benchmark_id", "zone"),
        *("endpoint", "pod", "namespace", "model", "request_id", "tenant"),
        *("uid", "queue", "cluster_queue", "parent", "flavor"),
    }
)
GPUS = frozenset({"gpu_uuid", "gpu_label", "gpu_labels"})
TEXTS = frozenset(
    {
        *("comment", "msg", "message", "note", "reason", "extra", "process_name", "thread_name"),
        *("command", "test", "setting", "value", "unknown_because"),
        *("called_from", "state_raw", "pid", "error", "features", "feature_sets"),
        "eviction_reason",
    }
)
AS_THEY_ARE = frozenset(
    {
        *("source", "state", "kind", "event", "phase", "method", "metric", "operation", "part"),
        *("job_id", "job_id_raw", "step_id", "exit_code", "derived_exit_code", "flags"),
        *("alloc_tres", "req_tres", "gres", "gpu_type", "gpu_type_requested", "gpu_model"),
        *(
            "gpu_instance",
            "mig_profile",
            "profile",
            "driver_version",
            "vbios_version",
            "price_class",
        ),
        *("pci_bus_id", "device", "port", "comm_id", "algorithm", "protocol", "dtype"),
        *("input_dtype", "kernel", "reduction", "nccl_version", "plugin_version", "currency"),
        *("timing_source", "transport", "ts_precision", "flagged_metrics"),
        *("engine", "role", "product", "status", "result", "gpu_indices"),
        *("belongs_to", "resource"),
    }
)
JOB_NUMBER = re.compile(r"\d+([_+.\[]\S*)?|\*?")
TOKEN = re.compile(r"[A-Za-z0-9_]+(?:[-.@][A-Za-z0-9_]+)*")
PART = re.compile(r"[-.@]")
SHORTEST = 3  # names below this are not looked for in texts
DIGEST_BYTES = 5


class Pseudonyms:
    """Replaces names in frames of raw tables; remembers them, to find them in texts."""

    def __init__(self, key: bytes | None = None) -> None:
        """Use `key`, or a new random one."""
        self._key = key or secrets.token_bytes(32)
        self._known: dict[str, str] = {}

    def note(self, rows: pl.DataFrame) -> None:
        """Remember the names of a frame, to replace them in texts of any frame."""
        for column in rows.columns:
            if (replace := self._replacement(column)) is not None and column not in TEXTS:
                for value in _values(rows[column]):
                    replace(value)

    def replaced(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return a frame with pseudonyms in place of its names."""
        return rows.with_columns(
            _mapped(rows[column], replace)
            for column in rows.columns
            if (replace := self._replacement(column)) is not None
        )

    def _replacement(self, column: str) -> Mapping | None:
        if column in NODES:
            return self._node
        if column in GPUS:
            return self._gpu
        if column in NAMES:
            return self._name
        return self._text if column in TEXTS else None

    def _node(self, value: str) -> str:
        if JOB_NUMBER.fullmatch(value):
            return value
        short = value.split(".", 1)[0]  # a host with its domain is the node without it
        found = self._remembered(short, f"node-{self._digest(short.lower())}")
        self._known.setdefault(value, found)
        return found

    def _gpu(self, value: str) -> str:
        node, hash_sign, index = value.rpartition("#")
        if hash_sign:
            return f"{self._node(node)}#{index}"
        prefix, dash, _ = value.partition("-")
        return f"{prefix}-{self._digest(value)}" if dash else value

    def _name(self, value: str) -> str:
        if JOB_NUMBER.fullmatch(value):
            return value
        if "/" in value:  # a pod in its namespace is found by both
            return "/".join(map(self._name, value.split("/")))
        return self._remembered(value, f"name-{self._digest(value)}")

    def _text(self, value: str) -> str:
        return TOKEN.sub(self._token, value)

    def _token(self, match: re.Match[str]) -> str:
        token = match[0]
        if token in self._known and len(token) >= SHORTEST:
            return self._known[token]
        for part in PART.split(token):
            if len(part) >= SHORTEST and part in self._known:
                token = token.replace(part, self._known[part])
        return token

    def _remembered(self, value: str, pseudonym: str) -> str:
        return self._known.setdefault(value, pseudonym)

    def _digest(self, value: str) -> str:
        digest = hashlib.blake2b(value.encode(), key=self._key, digest_size=DIGEST_BYTES)
        return digest.hexdigest()


def _values(column: pl.Series) -> list[str]:
    flat = column.explode() if column.dtype == pl.List(pl.String) else column
    return [value for value in flat.unique() if isinstance(value, str)]


def _mapped(column: pl.Series, replace: Mapping) -> pl.Series:
    if column.dtype == pl.List(pl.String):
        as_lists: list[Any] = [
            None if row is None else [replace(value) for value in row] for row in column.to_list()
        ]
        return pl.Series(column.name, as_lists, dtype=column.dtype)
    values = _values(column)
    return column.replace(values, [replace(value) for value in values])
