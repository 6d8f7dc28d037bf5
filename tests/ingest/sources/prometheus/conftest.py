"""Servers to ask: a scripted one with configurable faults, a real Prometheus with an exporter."""

import contextlib
import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.app.receivers import free_port
from tests.ingest.http_pages import exporting, serving
from tests.ingest.sources.prometheus.fake_server import FakeServer
from tests.until import until

WAIT_S = 60


@pytest.fixture
def fake():
    """Give a server of the test's own."""
    server = FakeServer()
    with serving(server.reply) as address:
        server.url = f"http://{address}"
        yield server


@pytest.fixture
def exporter():
    """Give a fake exporter on a port of its own."""
    with exporting() as found:
        yield found


def fetched(url):
    """Return what is answered at a URL; None where nothing is."""
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return urllib.request.urlopen(url, timeout=5).read()  # noqa: S310
    return None


@dataclass
class RealPrometheus:
    """A running server: its URL and how to stop and start it on the same data."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    options: tuple[str, ...] = ()

    @property
    def url(self):
        """Return where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def scrape(self, job, target, interval="200ms", more=""):
        """Start it with the settings of a job that asks a target; `more` are other settings."""
        (self.folder / "prometheus.yml").write_text(
            f"""global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}
scrape_configs:
  - job_name: {job}
    static_configs: [{{targets: ["{target}"]}}]
{more}"""
        )
        self.start()
        return self

    def start(self):
        """Start it and wait until it answers."""
        self.process = subprocess.Popen(
            [shutil.which("prometheus") or "prometheus", "--log.level=error",
             f"--config.file={self.folder / 'prometheus.yml'}",
             f"--storage.tsdb.path={self.folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}", *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.until(lambda: self.get("/-/ready") is not None, "it is ready")

    def stop(self):
        """Stop it in order, so that its data stays."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(WAIT_S)
            self.process = None

    def get(self, path):
        """Return what it answers; None where it does not."""
        return fetched(self.url + path)

    def samples(self, selector):
        """Return (name, time, value) of raw samples, by a client that is not ours."""
        answer = self.get("/api/v1/query?" + urllib.parse.urlencode({"query": selector}))
        results = json.loads(answer or b"{}")["data"]["result"]
        return sorted(
            (result["metric"]["__name__"], time_s, value)
            for result in results
            for time_s, value in result["values"]
        )

    @staticmethod
    def until(is_so, what):
        """Wait for something that comes; fail where it does not."""
        until(is_so, what, within_s=WAIT_S)


@contextlib.contextmanager
def real_prometheus(folder, *options):
    """Give a server with its settings in a folder, to be started; skip where none is installed."""
    if shutil.which("prometheus") is None:
        pytest.skip("the program prometheus is not installed (apt-get install prometheus)")
    server = RealPrometheus(folder, free_port(), options=options)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def prometheus_of(tmp_path):
    """Give what starts a real server for a job and its target; skip where none is installed."""
    with real_prometheus(tmp_path) as server:
        yield server.scrape


@pytest.fixture
def prometheus(prometheus_of, exporter):
    """Give a real server that scrapes the exporter five times a second."""
    return prometheus_of("dcgm", exporter.address)


@pytest.fixture
def node_exporter():
    """Give host and port of a real node_exporter; skip where none is installed."""
    program = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if program is None:
        pytest.skip("node_exporter is missing (apt-get install prometheus-node-exporter)")
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [program, f"--web.listen-address={address}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    try:
        RealPrometheus.until(lambda: fetched(f"http://{address}/"), "node_exporter answers")
        yield address
    finally:
        process.terminate()
        process.wait(WAIT_S)
