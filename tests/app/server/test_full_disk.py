"""A disk that is full while a server collects: all that is read answers, and nothing is lost."""

import contextlib
import json
import shutil
import subprocess
import time

import pytest
from tests.app.page_session import page_session
from tests.app.server.drill_site import Site
from tests.until import until

from goodput_queries.check import check
from goodput_queries.database import LocalStore

DISK_BYTES = 64 << 20
STEPS_AT_ONCE = 500
SETTINGS = '[[collect]]\nsource = "job-events"\nfolder = "{}"\ninterval_s = 0.1\n'


@pytest.fixture
def disk(tmp_path):
    """Give a folder that is a small disk."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("this user cannot mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def site(disk, tmp_path, empty_database):
    (tmp_path / "events").mkdir()
    (disk / "goodput.toml").write_text(SETTINGS.format(tmp_path / "events"))
    shutil.copyfile(empty_database, disk / "fleet.duckdb")
    with contextlib.ExitStack() as stack:
        yield Site(disk, stack)


class Job:
    """A job that writes steps, a second each."""

    def __init__(self, folder):
        self._file, self._began_s, self.steps = folder / "job.jsonl", time.time() - 7_200, 0

    def go_on(self):
        """Write more steps."""
        who = {"v": 1, "event": "step", "run_id": "9001", "rank": 0, "host": "n1", "dur_s": 1.0}
        with self._file.open("a") as file:
            for _ in range(STEPS_AT_ONCE):
                self.steps += 1
                line = {**who, "ts": self._began_s + self.steps, "step": self.steps}
                file.write(json.dumps(line) + "\n")


def fill(path):
    """Take all space of a disk."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.machine
def test_a_full_disk_stops_no_page_and_loses_nothing(site, tmp_path):
    job = Job(tmp_path / "events")
    job.go_on()
    site.serve()
    until(lambda: site.count("job_events") == job.steps, "the first steps are there")

    fill(site.folder / "filler")
    job.go_on()
    said = next(line for line in site.server.process.stderr if "the disk is full" in line)
    assert "job-events" in said
    assert site.count("job_events") == STEPS_AT_ONCE
    until(lambda: not site.server.get("/healthz").json()["is_writable"], "it says so")
    assert site.server.get("/healthz").status_code == 200
    assert site.server.get("/metrics").status_code == 200
    with page_session(site.server.url) as session:
        for page in ("", "runs", "data"):
            sent, errors = session.draw(page)
            assert errors == []
        assert "not stored" in sent

    (site.folder / "filler").unlink()
    job.go_on()
    until(lambda: site.count("job_events") == job.steps, "all steps are there")
    until(lambda: site.source("job-events")["state"] == "ok", "the source is in order")
    until(lambda: site.server.get("/healthz").json()["is_built"], "the ledger is up to date")
    assert site.server.get("/healthz").json()["is_writable"]
    assert site.server.end(15) == 0, site.server.process.stderr.read()
    with contextlib.closing(LocalStore(site.database)) as store:
        assert check(store)["violations"].sum() == 0
        assert store.read("select count(distinct step) from raw.job_events").item() == job.steps
