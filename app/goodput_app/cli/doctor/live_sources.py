"""What `goodput doctor` says of live sources: which answer, what they lack, what could be added."""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import goodput_app
from goodput_app.cli.serve import configured, received
from goodput_app.notify.plan import OWN_SOURCE
from goodput_app.server.background import RETENTION_STATUS
from goodput_app.server.metrics import push
from goodput_app.settings import RetentionSettings, settings, settings_file
from goodput_ingest.gpu_metrics import missing_counters, unread_names
from goodput_ingest.gpu_metrics.recommended import COUNTERS_FILE
from goodput_ingest.live.config import Collector, collectors
from goodput_ingest.live.store_lease import is_collected
from goodput_ingest.live.tail import Tail
from goodput_ingest.prometheus_api import other_series
from goodput_ingest.prometheus_api.discovery import Discovery
from goodput_ingest.received.arrived import UNREAD_OF_GPUS
from goodput_ingest.run.unexpected import CAUGHT, unexpected
from goodput_ingest.sources.kernel_log.live import KernelLogLive
from goodput_ingest.sources.nvml.live import NvmlLive
from goodput_ingest.sources.prometheus import Prometheus
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError

Finding = tuple[str, str, str, str]  # as in doctor.py: what, status, found, next
Table = Mapping[str, Any]

PATIENCE_S = 20.0  # for all sources together; one that hangs is named
NEARBY_PATIENCE_S = 3.0
NEARBY: tuple[Table, ...] = (  # what often runs where Goodput does
    {"source": "prometheus", "url": "http://127.0.0.1:9090"},
    {"source": "dcgm", "urls": ["http://127.0.0.1:9400"]},
    {"source": "slurm"},
    {"source": "nvml"},
)
EXAMPLE = Path(goodput_app.__file__).with_name("goodput.example.toml")
ALLOCATION = "GPU allocation"
KINDS = {  # of evidence: which sources give it, and the lines of goodput.toml that add one
    ALLOCATION: (
        {"slurm", "kubernetes", "kubernetes-api"},
        '[[collect]]\nsource = "slurm"\n'
        '# or "kubernetes" with url = "http://PROMETHEUS:9090"\n'
        "# of files: goodput ingest slurm FILE",
    ),
    "what GPUs did": (
        {"prometheus", "remote-write", "otlp", "dcgm", "nvml", "telemetry-parquet", "gpu-table"},
        '[[collect]]\nsource = "prometheus"\nurl = "http://PROMETHEUS:9090"\n'
        '# or "dcgm" with urls = ["http://NODE:9400"], or "nvml" on each node',
    ),
    "what jobs did": (
        {
            *("job-events", "job-log", "torchtitan-structured", "goodput-events", "otel-spans"),
            *("wandb-history", "mlflow", "tensorboard"),
        },
        '[[collect]]\nsource = "job-events"\nfolder = "FOLDER"\n'
        '# five lines of Python write them: docs/job-events.md; or "job-log" with a folder of logs',
    ),
    "GPU errors": (
        {"kernel-log", "nvml", "dcgm", "prometheus", "remote-write", "otlp"},
        '[[collect]]\nsource = "kernel-log"\n'
        "# on each node; of files: goodput ingest kernel-log FILE",
    ),
}
COUNTER_OFF = re.compile(r"counter off that could be used; add to .*: (?P<counter>[^,:\s]+)")
METRICS_SEEN = re.compile(r"\d+ GPUs, \d+ metrics$|\d+ metrics of [\w, -]+$")
STAYS_UNKNOWN = re.compile(r"^no \w+: .* stays unknown$")
READ_EXPORTERS = (
    'an exporter of the table "Sources" in docs/connect.md; of a site\'s own: names of metrics in '
    "exporters/ of [plugins], see docs/log-profiles.md"
)
NAMED_MAX = 8  # counters; the file of lines to add has all
START_SLURMDBD = "start it: systemctl status slurmdbd on its host says why it is down"
COLLECTOR_OFF = re.compile(r"the collector (?P<collector>\w+) is off")
NO_FILES = re.compile(r": 0 of \d+ files are ")
STATES_FACTS = (Tail, NvmlLive, KernelLogLive)  # whose probes say what is there, not what is wrong


def live_findings(
    db: str, store: Store | None, *, nearby: Sequence[Table] = NEARBY
) -> Iterator[Finding]:
    """Yield what live sources say of themselves now, and which kinds of evidence nothing gives.

    store: where statuses and known sources are read, None where there is no database.
    """
    try:
        sources = [*configured(), *received(db)]
    except GoodputError as error:
        yield "live sources", "problem", str(error), f"fix {settings_file()}"
        return
    yield _collecting(db, sources, is_new=store is None)
    for answers in _asked(sources, PATIENCE_S):
        yield from answers
    yield from _statuses(store, sources)
    yield from _nearby(sources, nearby)
    yield from _missing_kinds(sources, store)


def _collecting(db: str, sources: Sequence[Collector], *, is_new: bool) -> Finding:
    """Return whether sources are configured and asked; is_new: there is no database yet."""
    if not sources:
        file = settings_file()
        if file.exists():
            return "live sources", "missing", f"{file} names none", f"all there are: {EXAMPLE}"
        then = f"cp {EXAMPLE} {file}\n# then keep what this site has; goodput doctor tries it"
        return "live sources", "missing", f"{file} is not there", then
    are = "1 source is" if len(sources) == 1 else f"{len(sources)} sources are"
    if is_collected(db):
        return "live sources", "ok", f"{are} collected into {db}", ""
    nobody = f"{are} configured and not collected"
    status = "missing" if is_new else "problem"
    starts = f"goodput serve --db {db}, or goodput collect"
    return (
        "live sources",
        status,
        nobody,
        starts if settings().lake.url is None else "goodput collect",
    )


def _asked(sources: Sequence[Collector], patience_s: float) -> list[list[Finding]]:
    """Return what each source says, all asked at once; of one that hangs, that it does."""
    found: dict[int, list[Finding]] = {}

    def ask(number: int, source: Collector) -> None:
        found[number] = _answer(source)

    threads = [
        threading.Thread(target=ask, args=(number, source), daemon=True)
        for number, source in enumerate(sources)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [
        found.get(number, [_hanging(source, patience_s)]) for number, source in enumerate(sources)
    ]


def _hanging(one: Collector, patience_s: float) -> Finding:
    text = f"{one.origin} did not answer within {patience_s:g} s"
    return f"live {one.reads}", "problem", text, f"look at it, or at its timeout_s in {_file()}"


def _answer(one: Collector) -> list[Finding]:
    what = f"live {one.reads}"
    try:
        answers = list(one.source.probe())
        if isinstance(one.source, Prometheus):
            answers += _of_names(one.source)
    except GoodputError as error:
        is_of_slurmdbd = "does not reach slurmdbd" in str(error)
        then = START_SLURMDBD if is_of_slurmdbd else f"fix it there, or in {_file()}"
        return [(what, "problem", str(error), then)]
    except MemoryError:
        raise
    except CAUGHT as error:
        return [(what, "problem", str(unexpected(one.origin, error)), "please report it")]
    off = [found["counter"] for text in answers if (found := COUNTER_OFF.search(text))]
    rows = [_finding(one, what, text) for text in answers if not COUNTER_OFF.search(text)]
    if not any(status != "problem" for _, status, _, _ in rows):
        rows.insert(0, (what, "ok", f"{one.origin} answers", ""))
    if off:
        names = list(dict.fromkeys(off))
        text = f"{len(names)} optional counters are off: {_named(names)}"
        add = f"add the lines that you want of {COUNTERS_FILE} to the exporter's counters file"
        rows.append((what, "missing", text, add))
    return rows


def _finding(one: Collector, what: str, text: str) -> Finding:
    """Return the finding of a probe that answered in words."""
    if NO_FILES.search(text):
        return what, "missing", text, f"folder and pattern in {_file()}, or let jobs write there"
    if off := COLLECTOR_OFF.search(text):
        return what, "missing", text, f"--collector.{off['collector']} of node_exporter"
    if text.startswith(UNREAD_OF_GPUS):
        return what, "missing", text, READ_EXPORTERS
    if STAYS_UNKNOWN.search(text):
        return what, "missing", text, "an option or a newer release of the engine"
    if isinstance(one.source, STATES_FACTS) or METRICS_SEEN.search(text):
        return what, "ok", text, ""
    return what, "problem", text, f"fix it there, or in {_file()}"


def _of_names(server: Prometheus) -> Iterator[str]:
    """Yield what the names of a server's metrics say: counters that are off, what is not read."""
    now_s = time.time()
    with Discovery(server) as discovery:
        names = discovery.metric_names(now_s - 3_600, now_s)
    for line in missing_counters(names):
        yield f"counter off that could be used; add to the exporters' counters file: {line}"
    if unread := [name for name in unread_names(names) if not other_series.is_read(name)]:
        yield UNREAD_OF_GPUS + _named(unread)


def _named(names: Sequence[str]) -> str:
    """Return the first of many names and how many more there are."""
    more = [f"{len(names) - NAMED_MAX} more"] if len(names) > NAMED_MAX else []
    return ", ".join([*names[:NAMED_MAX], *more])


def _statuses(store: Store | None, sources: Sequence[Collector]) -> Iterator[Finding]:
    """Yield what the loop saw last of the sources that do not answer it."""
    if store is None:
        return
    configured_now = {(one.reads, one.origin) for one in sources}
    configured_now |= {(OWN_SOURCE, one.label) for one in settings().notify}
    if (otlp := settings().otlp) is not None:
        configured_now.add((push.STATUS_SOURCE, otlp.origin))
    if settings().retention != RetentionSettings():
        configured_now.add(RETENTION_STATUS)
    rows = store.read(
        """select source, origin, state, answered_at, error from marts.live_sources
        where state in ('failing', 'stale') or contains(error, ?) order by source, origin""",
        [UNREAD_OF_GPUS],
    )
    for row in rows.iter_rows(named=True):
        if row["state"] == "ok":
            found = UNREAD_OF_GPUS + row["error"].partition(UNREAD_OF_GPUS)[2]
            yield f"collected {row['source']}", "missing", found, READ_EXPORTERS
            continue
        last = f"{row['answered_at']:%F %T}Z" if row["answered_at"] else "never"
        found = f"{row['origin']} is {row['state']}, last success {last}: {row['error'] or '-'}"
        next_step = "see the page Data"
        if (row["source"], row["origin"]) not in configured_now:
            found = f"{row['origin']} is not in {_file()} any more, last success {last}"
            next_step = f"goodput retire {row['source']}, or configure it again"
        yield f"collected {row['source']}", "problem", found, next_step


def _nearby(sources: Sequence[Collector], tables: Sequence[Table]) -> Iterator[Finding]:
    """Yield what answers on this machine and is not collected, with the lines that add it."""
    known = {one.reads for one in sources}
    unused = [table for table in tables if table["source"] not in known]
    hasty = {"timeout_s": NEARBY_PATIENCE_S}
    found = collectors([t if t["source"] == "nvml" else {**t, **hasty} for t in unused])
    for table, answers in zip(unused, _asked(found, NEARBY_PATIENCE_S), strict=True):
        if any(status == "ok" for _, status, _, _ in answers):
            lines = "\n".join(f"{key} = {_toml(value)}" for key, value in table.items())
            text = f"{table['source']} answers on this machine and is not collected"
            yield f"reachable {table['source']}", "missing", text, f"[[collect]]\n{lines}"


def _missing_kinds(sources: Sequence[Collector], store: Store | None) -> Iterator[Finding]:
    """Yield the kinds of evidence that no source gives, live or ingested."""
    known = {one.reads for one in sources}
    found = dict.fromkeys(KINDS, "no source gives it")
    if store is not None:
        known |= set(store.read("select distinct source from state.ingested").to_series())
        inferred = "select bool_or(is_inferred) from intermediate.int_job_runs"
        if store.read(inferred).item():
            found[ALLOCATION] = "no scheduler; inferred from job events, processes, activity"
    for kind, (names, line) in KINDS.items():
        if names.isdisjoint(known):
            yield kind, "missing", found[kind], line


def _file() -> str:
    return str(settings_file())


def _toml(value: object) -> str:
    """Return a text or a list of texts as a settings file has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"'
