"""The site of the live drill: exporters, a real Prometheus, a job that writes events, a server."""

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.app.served import Server, serving
from tests.until import until

from goodput_queries.errors import GoodputError
from goodput_queries.remote import find_server

SCRAPE_MS = 500
STEP_S = 0.5
WORK_S = 0.4  # of a step: what comes between two is not declared, and for readings to settle
NODES, GPUS_PER_NODE = 8, 8
TRAINING = range(4)  # nodes of the job


@dataclass
class Exporters:
    """Eight exporters behind one address; `is_over` ends what they have to say."""

    address: str = ""
    is_over: bool = False

    def answer(self, path, _):
        """Return what the exporter of a node prints: the free one idles, the others work."""
        if self.is_over:
            return None
        node = int(path.split("/")[1])
        active = 0.0 if node == NODES - 1 else 0.9
        uuid = f"GPU-{node:08x}-0000-4000-8000-"
        lines = [
            f'{name}{{gpu="{gpu}",UUID="{uuid}{gpu:012x}",pci_bus_id="00000000:{gpu + 1:02X}:00.0"'
            f',device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="n{node}"}} {value}'
            for gpu in range(GPUS_PER_NODE)
            for name, value in (
                ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", active),
                ("DCGM_FI_DEV_POWER_USAGE", 100 + 500 * active),
            )
        ]
        return "\n".join([*lines, ""]).encode(), "text/plain; version=0.0.4"


def configure(folder, exporters):
    """Write the settings of Prometheus: a job a node, since the exporters differ by their path."""
    jobs = "".join(
        f"  - job_name: n{node}\n    metrics_path: /{node}/metrics\n"
        f'    static_configs: [{{targets: ["{exporters}"]}}]\n'
        for node in range(NODES)
    )
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {SCRAPE_MS}ms, scrape_timeout: {SCRAPE_MS}ms}}\n"
        f"scrape_configs:\n{jobs}"
    )


def down(prometheus):
    """Return how many targets it could not scrape last."""
    return (prometheus.get("/api/v1/targets") or b"").count(b'"health":"down"')


@dataclass
class Job:
    """A job of 32 ranks that writes its events, a step every half a second and pauses between."""

    file: Path
    steps: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self):
        """Write until it is over."""
        with self.file.open("a", buffering=1) as out:
            self._say(out, "job.start")
            while not self.is_over.wait(STEP_S):
                self.steps += 1
                self._say(out, "step", step=self.steps, dur_s=WORK_S)
            self._say(out, "job.end")

    def goes_on(self, steps):
        """Wait until it has done so many more steps."""
        goal = self.steps + steps
        until(lambda: self.steps >= goal, "the job has done its steps")

    def _say(self, out, event, **more):
        for node in TRAINING:
            for gpu in range(GPUS_PER_NODE):
                rank = node * GPUS_PER_NODE + gpu
                who = {"run_id": "9001", "rank": rank, "local_rank": gpu, "host": f"n{node}"}
                line = {"v": 1, "ts": time.time(), "event": event, **who, **more}
                out.write(json.dumps(line) + "\n")


@dataclass
class Site:
    """A folder with settings and a database, and the server on it, when there is one."""

    folder: Path
    stack: contextlib.ExitStack
    server: Server | None = None

    @property
    def database(self):
        """Return where the database is."""
        return self.folder / "fleet.duckdb"

    def serve(self, **environment):
        """Start the server and wait until it says where it is."""
        self.server = self.stack.enter_context(serving(self.database, **environment))

    def read(self, sql):
        """Return rows through the server."""
        with contextlib.suppress(GoodputError):
            found = find_server(self.database)
            if found is not None:
                with contextlib.closing(found):
                    return found.read(sql).rows()
        return []

    def source(self, name):
        """Return how a live source is doing."""
        columns = "state, answered_at, failures"
        rows = self.read(f"select {columns} from marts.live_sources where source = '{name}'")
        return dict(zip(columns.split(", "), rows[0], strict=True)) if rows else {}

    def has_collected(self, name, since):
        """Say whether a poll that began after a moment has read all there was."""
        answered_at = self.source(name).get("answered_at")
        return answered_at is not None and answered_at > since

    def count(self, table):
        """Return how many rows there are."""
        rows = self.read(f"select count(*) from raw.{table}")
        return int(rows[0][0]) if rows else 0
