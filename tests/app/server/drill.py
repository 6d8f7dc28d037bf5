"""Seconds from evidence to page, and from evidence against it to its end, of each rule that pages.

    python -m tests.app.server.drill [RULE ...]

A real Slurm, a real Prometheus with an exporter and `goodput serve` with a webhook. A drill gives
evidence and yields when the rule's own threshold is reached, then gives evidence against it. What
takes minutes by its threshold has times in the past: readings of `silent_source`.
"""

import contextlib
import json
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.app.receivers import pages, web
from tests.app.served import goodput
from tests.app.server.drill_site import Site
from tests.ingest.sources.prometheus.conftest import real_prometheus
from tests.ingest.sources.slurm.slurm_lab import Lab
from tests.until import until

from goodput_queries.catalog.rules import rules

POLL_S, SCRAPE_S = 10, 5
NO_DATA_S = 900.0  # threshold no_data_page_ms
LONG_AGO_S = NO_DATA_S - 30
NOT_DRILLED = {
    "build_refused": "no evidence from outside makes the checks of a build fail",
    "hang": "not seen live: dumps of ranks that wait for minutes are read in cases and fleets",
    "no_step": "not seen live: minutes without a step are those of cases and fleets",
    "source_failing": "not seen live: a source that fails for minutes is that of its cases",
}
GPUS = {"gpu1": 4, "gpu2": 4, "free1": 8, "free2": 8}  # Slurm has the first two
PORTS = [(node, port) for node in ("gpu1", "gpu2") for port in (0, 1)]
SETTINGS = """
[ingest]
cluster = "lab"
[[collect]]
source = "prometheus"
url = "{prometheus}"
interval_s = {poll}
host_interval_s = {poll}
backfill_s = 1200
overlap_s = 30
settle_s = 1
[[collect]]
source = "slurm"
interval_s = {poll}
backfill_s = 3600
timeout_s = 10
[[notify]]
to = "webhook"
url = "{hook}"
min_severity = "page"
"""


@dataclass
class Exporter:
    """What is scraped. late_s: how old its readings are; began_s: they are of now since.

    is_silent: it does not answer.
    """

    late_s: float = 0.0
    is_silent: bool = False
    last_s: float = 0.0
    began_s: float = 0.0
    scrapes: int = 0
    gone: set[tuple[str, int]] = field(default_factory=set)
    xids: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    is_fabric_down: bool = False

    def answer(self, _path, _headers):
        """Return the page."""
        if self.is_silent:
            return None
        self.scrapes += 1
        self.last_s = time.time() - self.late_s
        at = f" {self.last_s * 1000:.0f}" if self.late_s else ""
        lines = []
        for number, (node, gpus) in enumerate(GPUS.items()):
            for gpu in sorted(set(range(gpus)) - {gone for of, gone in self.gone if of == node}):
                xid = self.xids[node, gpu]
                labels = (
                    f'gpu="{gpu}",UUID="GPU-{number:08x}-0000-4000-8000-{gpu:012x}",'
                    f'pci_bus_id="00000000:{gpu + 1:02X}:00.0",modelName="H100",Hostname="{node}"'
                )
                lines += [
                    f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} 0.9{at}",
                    f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} {xid}{at}",
                ]
        lines += [
            f'node_infiniband_state_id{{device="mlx5_{port}",port="1",instance="{node}:9100"}} '
            f"{1 if self.is_fabric_down else 4}{at}"
            for node, port in PORTS
        ]
        return "\n".join([*lines, ""]).encode(), "text/plain; version=0.0.4"


@dataclass
class Drill(Site):
    """The site with what it watches, and what its webhook received."""

    hook: Any = None
    lab: Any = None
    exporter: Exporter = field(default_factory=Exporter)

    @property
    def environment(self):
        """Return what the server needs to find Slurm."""
        return {name: self.lab.environment[name] for name in ("SLURM_CONF", "PATH")}

    def sent(self, rule, event, since):
        """Say whether a page of a rule came, or its end."""
        bodies = [json.loads(body) for _, body in self.hook.posts[since:]]
        return any(
            one["rule"] == rule and (event == "resolved" or one["severity"] == "page")
            for body in bodies
            for one in body["findings"]
            if (body["event"] == "finding.resolved") == (event == "resolved")
        )

    def ingest(self, source, name):
        """Load a file of the site through its server."""
        done = goodput("ingest", source, name, "--db", self.database.name, cwd=self.folder)
        assert done.returncode == 0, done.stderr

    def take_down(self, *names):
        """Stop the daemons of nodes, which would come back by themselves; let Slurm know."""
        for name in names:
            self.stop("slurmd", "-D", "-N", name)
            self.lab.run("scontrol", "update", f"nodename={name}", "state=down", "reason=drill")

    def bring_back(self, *names):
        """Start the daemons of nodes again, and return the nodes to service."""
        for name in names:
            self.lab.daemon("slurmd", "-D", "-N", name)
            self.lab.run("scontrol", "update", f"nodename={name}", "state=resume")

    def stop(self, *command):
        """Stop a daemon of Slurm."""
        found = next(one for one in self.lab.daemons if one.args[: len(command)] == command)
        self.lab.daemons.remove(found)
        found.terminate()
        found.wait()

    def run_jobs(self):
        """Wait until a job has each node of Slurm, and that is known."""
        held = "select count(distinct node) from intermediate.int_holds where end_ms is null"
        until(lambda: self.read(held) == [(2,)], "jobs have both nodes", every_s=0.5)


def silent_source(site):
    """Begin with old readings: the exporter stopped before the server came."""
    yield site.exporter.last_s + NO_DATA_S
    site.exporter.is_silent, site.exporter.late_s, site.exporter.began_s = False, 0.0, time.time()
    yield site.exporter.began_s
    site.run_jobs()


def gpu_error(site):
    site.exporter.xids["gpu1", 1] = 79
    yield time.time()
    tests = site.folder / "tests.csv"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    tests.write_text(f"cluster,node,test,result,at\nlab,gpu1,memory,pass,{at}\n")
    site.ingest("node-tests", tests.name)
    yield time.time()


def silent_gpu(site):
    site.exporter.gone.add(("gpu2", 2))
    yield time.time() + 20
    site.exporter.gone.clear()
    yield time.time()


def fabric_fault(site):
    site.exporter.is_fabric_down = True
    yield time.time()
    site.exporter.is_fabric_down = False
    yield time.time()


def node_down(site):
    site.run_jobs()
    site.take_down("gpu2")
    yield time.time()
    site.bring_back("gpu2")
    yield time.time()


def cluster_unavailable(site):
    site.take_down("gpu1", "gpu2")
    yield time.time()
    site.bring_back("gpu1", "gpu2")
    yield time.time()


DRILLS = (silent_source, node_down, cluster_unavailable, gpu_error, silent_gpu, fabric_fault)


def paging():
    """Return the names of the rules that can page."""
    return {
        rule.name
        for rule in rules()
        if "page" in {rule.texts["severity"], *rule.severity_when.values()}
    }


@contextlib.contextmanager
def drilled(folder):
    """Give the site with everything running, its readings old ones."""
    with contextlib.ExitStack() as stack:
        (folder / "slurm").mkdir()
        hook = stack.enter_context(web())
        lab = Lab(folder / "slurm")
        stack.callback(lab.stop)
        lab.start()
        for node in ("gpu1", "gpu2"):
            lab.submit("sleep 3600", "--requeue", "--gpus=4", f"--nodelist={node}", "-t", "60")
        exporter = Exporter(late_s=LONG_AGO_S)
        url = stack.enter_context(pages(exporter.answer))
        prometheus = stack.enter_context(real_prometheus(folder))
        prometheus.scrape(
            "dcgm", url.removeprefix("http://"), f"{SCRAPE_S}s", "    honor_labels: true"
        )
        (folder / "goodput.toml").write_text(
            SETTINGS.format(prometheus=prometheus.url, poll=POLL_S, hook=hook.url)
        )
        until(lambda: exporter.scrapes > 4, "it has scraped")
        exporter.is_silent = True
        site = Drill(folder, stack, hook=hook, lab=lab, exporter=exporter)
        site.serve(**site.environment)
        until(lambda: site.count("gpu_samples"), "readings come", every_s=0.5)
        yield site


def measured(site, drill):
    """Yield the seconds to the page, then those to its end."""
    came, steps = len(site.hook.posts), drill(site)
    for event in ("open", "resolved"):
        reached_s = next(steps)
        what = f"{drill.__name__} is {event}"
        until(lambda e=event: site.sent(drill.__name__, e, came), what, every_s=0.1)
        yield time.time() - reached_s
    next(steps, None)


def main(names):
    """Print the table."""
    say = partial(print, end="", flush=True)
    say(f"polls every {POLL_S} s; seconds (polls)\n")
    say(f"{'rule':20}{'to the page':>14}{'to its end':>14}\n")
    with tempfile.TemporaryDirectory() as folder, drilled(Path(folder)) as site:
        for drill in (one for one in DRILLS if not names or one.__name__ in names):
            say(f"{drill.__name__:20}")
            for took_s in measured(site, drill):
                say(f"{took_s:8.1f} ({took_s / POLL_S:3.1f})")
            say("\n")
    say("".join(f"{name:20}  {why}\n" for name, why in NOT_DRILLED.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
