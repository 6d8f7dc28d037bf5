"""Why a job of GPUs waits and which nodes it asks for, as the controller lists jobs."""

import re
from datetime import datetime, timedelta
from typing import Any

from goodput_ingest.formats import gres, hostlist, raw_tables
from goodput_ingest.formats.json_text.json_lines import EPOCH
from goodput_ingest.formats.parsed import TEXT_MAX_CHARS, Parsed, frame
from goodput_ingest.sources.slurm.features import feature_sets

REQUESTS = raw_tables.columns("job_requests", "source")
# of scontrol, in the order in which it prints them: a job's name and comment are free text
_STATE = re.compile(r" JobState=(\w+) Reason=(\S*) (?:FailedNode=\S* )?Dependency=")
_NODES = re.compile(r" ReqNodeList=(\S*) ExcNodeList=(\S*) ")
_COUNT = re.compile(r" NumNodes=(\d{1,6})(?:-\d{1,6})? NumCPUs=")
_FEATURES = re.compile(r" Features=(\S*) DelayBoot=")
_GPUS = re.compile(r" (?:ReqTRES|TresPer\w+)=\S*\bgres[/:]gpu")
_NO_TEXT = {"", "(null)", "None"}
PERIOD = timedelta(minutes=10)


def of_text(text: str) -> dict[str, object] | None:
    """Return the request in a record of `scontrol show job`; None: no GPUs, or nothing to say.

    Raises ValueError where a field appears twice, so that free text may imitate it.
    """
    if _GPUS.search(text) is None:
        return None
    found = [pattern.findall(text) for pattern in (_STATE, _NODES, _COUNT, _FEATURES)]
    if any(len(values) > 1 for values in found):
        raise ValueError("a field of its request appears twice")
    first: list[Any] = [values[0] if values else "" for values in found]
    state, nodes, count, features = first
    requested, excluded = nodes or ("", "")
    reason = state[1] if state and state[0] == "PENDING" else None
    return _request(reason, requested, excluded, features, int(count) if count else None)


def of_json(record: dict[str, Any]) -> dict[str, object] | None:
    """Return the same of a job of `squeue --json` or `scontrol show jobs --json`."""
    if not any("gpu" in str(record.get(name) or "") for name in record if name.startswith("tres_")):
        return None
    states, count = record.get("job_state"), record.get("node_count")
    is_waiting = "PENDING" in (states if isinstance(states, list) else [states])
    number = count.get("number") if isinstance(count, dict) else count
    names = ("state_reason", "required_nodes", "excluded_nodes", "features")
    reason, requested, excluded, features = (str(record.get(name) or "") for name in names)
    nodes = number if isinstance(number, int) and 0 <= number < 10**6 else None
    return _request(reason if is_waiting else None, requested, excluded, features, nodes)


def _request(
    reason: str | None, requested: str, excluded: str, features: str, count: int | None
) -> dict[str, object] | None:
    nodes = {
        "requested_nodes": _expanded(requested),
        "excluded_nodes": _expanded(excluded),
        "feature_sets": None if features in _NO_TEXT else feature_sets(features, count),
    }
    if reason is None and not any(nodes.values()):
        return None
    reason = None if reason is None else (reason[:TEXT_MAX_CHARS] or "None")
    return {"reason": reason, "nodes_requested": count, **nodes}


def _expanded(text: str) -> list[str] | None:
    return None if text in _NO_TEXT else hostlist.expand(text, gres.GPUS_PER_NODE_MAX * 64) or None


def parsed(found: list[tuple[dict[str, object], dict[str, object]]], at: datetime | None) -> Parsed:
    """Return `raw.job_requests` of keys (cluster, job_id_raw, submit_at) and requests."""
    keys = ("cluster", "job_id_raw", "submit_at")
    # a listing a minute of each waiting job would be far more rows than its reasons change
    period_at = None if at is None else at - (at - EPOCH) % PERIOD
    seen = {"period_at": period_at, "observed_at": at}
    rows = [{name: key[name] for name in keys} | request | seen for key, request in found]
    return Parsed("job_requests", frame(rows, REQUESTS))
