"""Open every page in a real browser on the demo without each of its sources: `make sweep`.

Prints a row for each page and missing source: exceptions, console errors, payload, the server's
processor time and the time until the page is drawn; ends with 1 where a page failed.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import TimeoutError as TimeOut
from playwright.sync_api import sync_playwright
from tests.browser.conftest import CHROMIUM, FLAGS

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_queries.database import LocalStore

ROOT = Path(__file__).parents[2]
PAGES = {
    "overview": "/", "fleet": "/fleet", "runs": "/runs", "run": "/run?run=lab/main",
    "nodes": "/nodes", "node": "/nodes?node=vm", "health": "/health",
    "findings": "/findings", "waste": "/waste", "network": "/network", "energy": "/energy",
    "cost": "/cost", "prices": "/cost?part=prices", "what-if": "/cost?part=what-if",
    "data": "/data", "explorer": "/explorer", "query": "/query", "wall": "/?view=wall",
    "gpu": "/gpu?gpu=GPU-3f6b2d6a-2b08-5e42-952d-08e72183e84e",
}  # fmt: skip
WAIT_MS = 60_000
TICKS_PER_S = 100


@dataclass
class Visit:
    """What a page did while it was opened."""

    errors: list[str] = field(default_factory=list)
    bytes_: int = 0


def main():
    """Sweep the pages; return 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", nargs="*", help="the missing sources (default: each in turn)")
    parser.add_argument("--pages", nargs="*", choices=PAGES, default=PAGES, help="(default: all)")
    given = parser.parse_args()
    steps = recipe(ROOT / "sample_data")
    names = given.without or ["nothing", *dict.fromkeys(step.path.name for step in steps)]
    print("| without | page | failures | payload (kB) | server CPU (s) | drawn after (s) |")  # noqa: T201
    print("|---|---|---|---|---|---|")  # noqa: T201
    failed = False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in names:
            with served(name) as (url, pid):
                for page in given.pages:
                    failed |= swept(browser.new_page(), name, page, f"{url}{PAGES[page]}", pid)
        browser.close()
    return int(failed)


@contextmanager
def served(missing):
    """Serve the sample data without one of its sources; give the URL and the server's pid."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "fleet.duckdb"
        store = LocalStore(database)
        for step in recipe(ROOT / "sample_data"):
            if step.path.name != missing:
                ingest(store, step.source, [step.path], step.options)
        store.build()
        store.close()
        goodput = Path(sys.executable).with_name("goodput")
        command = [str(goodput), "serve", "--db", str(database)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            found = next(filter(None, (re.search(r"http://[\w.:]+", s) for s in server.stdout)))
            try:
                yield found[0].rstrip("/"), server.pid
            finally:
                server.terminate()


def swept(page, missing, name, url, pid):
    """Open a page, print its row; return whether it failed."""
    visit = Visit()
    page.on("console", lambda m: visit.errors.append(logged(m)) if m.type == "error" else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("websocket", lambda socket: socket.on("framereceived", lambda f: received(visit, f)))
    cpu_s, began = processor_s(pid), time.monotonic()
    try:
        page.goto(url, timeout=WAIT_MS)
        page.wait_for_selector('[data-test-script-state="notRunning"] h1', timeout=WAIT_MS)
        visit.errors += page.get_by_test_id("stException").all_inner_texts()
    except TimeOut:
        visit.errors.append(f"not drawn within {WAIT_MS / 1000:.0f} s")
    took_s, cpu_s = time.monotonic() - began, processor_s(pid) - cpu_s
    page.close()
    said = "; ".join(error.splitlines()[0][:80] for error in visit.errors) or "-"
    cells = missing, name, said, f"{visit.bytes_ / 1000:,.0f}", f"{cpu_s:.1f}", f"{took_s:.1f}"
    print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201
    return bool(visit.errors)


def logged(message):
    """Return an error of the console with the address that it is about."""
    return f"{message.text} {message.location['url']}"


def received(visit, frame):
    """Count what the server sent."""
    visit.bytes_ += len(frame)


def processor_s(pid):
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


if __name__ == "__main__":
    sys.exit(main())
