"""The live drill: real scrapes, a job that writes events, and everything that can stop stops.

Sixty-four GPUs on eight fake exporters, scraped by a real Prometheus; a job on half of them writes
its events, another says nothing, eight GPUs are free. `goodput serve` collects. Prometheus is away
for a while, then the server is killed and started again. The ledger must be that of a reader who
came once at the end, and but for what was never scraped that of a run without any trouble.
"""

import contextlib
import shutil
import signal
import subprocess
import threading
import time
import tomllib
from datetime import UTC

import polars as pl
import pytest
from tests.app.receivers import pages
from tests.app.served import GOODPUT
from tests.app.server import drill_site
from tests.app.server.drill_site import (
    GPUS_PER_NODE,
    NODES,
    SCRAPE_MS,
    TRAINING,
    Exporters,
    Job,
    Site,
)
from tests.ingest.sources.prometheus.conftest import real_prometheus
from tests.until import until

from goodput_ingest.live.config import collectors
from goodput_ingest.live.scheduler import Collection
from goodput_ingest.live.store_lease import Held
from goodput_ingest.run import ingest as load
from goodput_ingest.source import Batch, ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.evidence.plausible import utc_now

HOLE_STEPS, DOWN_STEPS = 12, 8  # how long Prometheus, and the server, are away
SILENT = range(4, 7)  # nodes of the job without events
SEGMENT = "gpu_uuid, start_ms, end_ms, category, phase, job_run_key, attempt_key"


@pytest.fixture
def exporters():
    found = Exporters()
    with pages(found.answer) as url:
        found.address = url.removeprefix("http://")
        yield found


@pytest.fixture
def prometheus(tmp_path, exporters):
    with real_prometheus(tmp_path) as found:
        drill_site.configure(tmp_path, exporters.address)
        found.start()
        yield found


@pytest.fixture
def job(tmp_path):
    (tmp_path / "events").mkdir()
    found = Job(tmp_path / "events" / "job.jsonl")
    thread = threading.Thread(target=found.run)
    thread.start()
    yield found
    found.is_over.set()
    thread.join()


@pytest.fixture
def site(tmp_path, prometheus, empty_database):
    shutil.copyfile(empty_database, tmp_path / "fleet.duckdb")
    (tmp_path / "goodput.toml").write_text(
        f"""[ingest]
cluster = "lab"

[[collect]]
source = "prometheus"
url = "{prometheus.url}"
interval_s = 1
backfill_s = 600
overlap_s = 5
settle_s = 0

[[collect]]
source = "job-events"
folder = "{tmp_path / "events"}"
interval_s = 0.5
"""
    )
    with contextlib.ExitStack() as stack:
        yield Site(tmp_path, stack)


def accounting(folder):
    """Return the accounting of the two jobs, which began a minute ago and still run."""
    start = int(time.time()) - 60
    header = "Cluster|JobID|JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End"
    header += "|ElapsedRaw|NNodes|NodeList|AllocTRES|JobName"
    rows = [
        f"lab|{job}|{job}|alice|vision|batch|RUNNING|{start}|{start}|{start}|Unknown|60"
        f"|{len(nodes)}|n[{nodes[0]}-{nodes[-1]}]|gres/gpu={8 * len(nodes)},node={len(nodes)}|{job}"
        for job, nodes in ((9001, TRAINING), (9002, SILENT))
    ]
    path = folder / "sacct.txt"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def segments(store):
    store.build()
    return store.read(f"select {SEGMENT} from marts.ledger_pieces order by gpu_uuid, start_ms")


def read_at_the_end(folder, empty):
    """Return a database of somebody who asked all sources once, after everything."""
    path = folder / "late.duckdb"
    shutil.copyfile(empty, path)
    store = LocalStore(path)
    load.ingest(store, "slurm", [folder / "sacct.txt"], ReadOptions(cluster="lab"))
    tables = tomllib.loads((folder / "goodput.toml").read_text())["collect"]
    outcomes = Collection(collectors(tables, cluster="lab"), Held(store)).ask_once()
    assert [outcome.error for outcome in outcomes] == [None, None]
    return store


def add_what_was_never_scraped(store):
    """Add the readings that a Prometheus without an outage would have; return the hole in ms."""
    rows = store.read(
        """select *, lead(ts) over (partition by gpu_uuid order by ts) as next_ts
        from raw.gpu_samples qualify next_ts - ts > interval 3 seconds"""
    )
    assert rows["gpu_uuid"].n_unique() == rows.height == NODES * GPUS_PER_NODE
    between = pl.datetime_ranges(
        pl.col("ts"), pl.col("next_ts"), f"{SCRAPE_MS}ms", closed="none", time_unit="us"
    )
    hole = rows.select(pl.col("ts").min(), pl.col("next_ts").max()).row(0)
    filled = rows.with_columns(between.alias("ts")).drop("next_ts").explode("ts")
    store.load(Batch("gpu_samples", filled, "prometheus", "the hole", "the hole"))
    first_ms, last_ms = (round(at.replace(tzinfo=UTC).timestamp() * 1000) for at in hole)
    return first_ms, last_ms


def pieces(store, start_ms, end_ms):
    """Return the segments of a window, cut at its ends."""
    found = segments(store).filter((pl.col("start_ms") < end_ms) & (pl.col("end_ms") > start_ms))
    return found.with_columns(
        pl.col("start_ms").clip(lower_bound=start_ms), pl.col("end_ms").clip(upper_bound=end_ms)
    )


@pytest.mark.slow
@pytest.mark.machine
def test_nothing_is_lost_or_doubled_when_prometheus_goes_and_the_server_is_killed(
    site, prometheus, exporters, job, empty_database
):
    site.serve()
    ingest = [*GOODPUT, "ingest", "slurm", accounting(site.folder).name, "--db", "fleet.duckdb"]
    done = subprocess.run(ingest, cwd=site.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    job.goes_on(6)
    until(lambda: site.count("gpu_samples") > 5 * NODES * GPUS_PER_NODE, "readings come")

    prometheus.stop()
    events = site.count("job_events")
    job.goes_on(HOLE_STEPS)
    until(lambda: site.source("prometheus").get("state") == "failing", "the outage is seen")
    until(lambda: site.count("job_events") > events, "the other source goes on")
    assert site.source("job-events")["failures"] == 0
    prometheus.start()
    back = utc_now()
    until(lambda: site.has_collected("prometheus", back), "Prometheus is caught up with")

    assert site.server.end(signal.SIGKILL) == -signal.SIGKILL
    job.goes_on(DOWN_STEPS)
    site.serve()
    job.goes_on(4)

    exporters.is_over = True
    job.is_over.set()
    until(lambda: drill_site.down(prometheus) == NODES, "the last scrape is over")
    over = utc_now()
    for name in ("prometheus", "job-events"):
        until(lambda name=name: site.has_collected(name, over), "all is collected")
    assert site.server.end(signal.SIGTERM) == 0, site.server.process.stderr.read()

    with (
        contextlib.closing(LocalStore(site.database)) as disturbed,
        contextlib.closing(read_at_the_end(site.folder, empty_database)) as late,
    ):
        assert segments(disturbed).rows() == segments(late).rows()

        hole = add_what_was_never_scraped(late)
        ends = segments(late).select(pl.col("start_ms").min(), pl.col("end_ms").max()).row(0)
        for window in ((ends[0], hole[0]), (hole[1], ends[1])):
            assert pieces(disturbed, *window).rows() == pieces(late, *window).rows()
