"""When a server builds and looks into its lake, and what it says of a build that failed."""

import asyncio
from types import SimpleNamespace

import polars as pl
import pytest
from tests.tables import each

from goodput_app.server import asgi
from goodput_app.server.background import Upkeep
from goodput_app.server.viewers import Viewers
from goodput_queries.errors import BuildError


class Server:
    """A server by a clock of its own, whose builds take as long as a test says."""

    def __init__(self, build_s, poll_s=120):
        self.now_s, self.builds, self.viewers, self.failure = 0.0, 0, Viewers(), None
        self.shown_at_s = []

        def build():
            self.builds += 1
            self.now_s += build_s
            if self.failure is not None:
                raise self.failure
            return pl.DataFrame({"stage": ["ledger"]})

        self.store = SimpleNamespace(build=build, show_all=self._show_all, lake=None, evaluated_s=0)
        polled = [SimpleNamespace(source=SimpleNamespace(interval_s=poll_s))]
        self.upkeep = Upkeep(self.store, self.viewers, lambda: self.now_s, polled)

    def _show_all(self):
        self.shown_at_s.append(self.now_s)

    def run_for(self, seconds):
        """Look every second, as the server does; return how many builds there were."""
        before, until_s = self.builds, self.now_s + seconds
        while self.now_s < until_s:
            self.upkeep.run()
            self.now_s += 1
        return self.builds - before


@pytest.fixture(autouse=True)
def _builds_alone(monkeypatch):
    """Count and drop nothing."""
    for task in ("_count", "_prune"):
        monkeypatch.setattr(Upkeep, task, lambda _: None)


@each(
    (120, 0, 1, 30, 1), (120, 0, 1, 33, 2), (120, 1, 1, 30, 6), (120, 0, 20, 70, 1),
    (120, 0, 20, 90, 2), (120, 1, 20, 70, 1), (120, 1, 20, 90, 2), (20, 0, 1, 12, 2),
    (20, 0, 2, 20, 1), (20, 0, 2, 22, 2), (20, 0, 20, 90, 2),
)  # fmt: skip
def test_builds_take_a_small_share_of_the_time(poll_s, pages, build_s, seconds, expected):
    """A thirtieth, a tenth where each poll is built, a fifth while a page is open.

    None waits over a minute.
    """
    server = Server(build_s, poll_s)
    server.viewers.pages = pages

    assert server.run_for(seconds) == expected


@each((0, 45, 2), (1, 45, 1), (1, 54, 2))
def test_what_pages_evaluate_of_a_build_counts_as_it(pages, seconds, expected):
    """The next build makes all of it stale."""
    server = Server(1)
    server.viewers.pages = pages
    server.upkeep.run()
    server.store.evaluated_s += 12

    assert 1 + server.run_for(seconds) == expected


def test_a_ledger_whose_build_failed_is_not_called_built():
    """A build that fails takes its time as well: the next one is put off as long."""
    server = Server(1)
    server.run_for(1)
    assert server.upkeep.is_built

    server.failure = BuildError("it cannot be built")
    server.now_s += 60
    with pytest.raises(BuildError):
        server.run_for(1)
    assert not server.upkeep.is_built
    assert server.run_for(20) == 0


def test_a_server_looks_again_and_again_and_logs_a_failure_once(monkeypatch, caplog):
    monkeypatch.setattr(asgi, "BUILD_EVERY_S", 0)
    runs, is_over = [], asyncio.Event()

    def run():
        runs.append("failed")
        if len(runs) == 3:
            is_over.set()
        raise BuildError("it cannot be built")

    asyncio.run(asgi._keep_built(SimpleNamespace(run=run), is_over))

    assert len(runs) == 3
    said = [record.message for record in caplog.records]
    assert said == ["the ledger is not up to date: it cannot be built"]


def test_polls_are_shown_every_quarter_of_a_minute_and_who_opens_a_page_waits_as_a_viewer():
    quick, server = Server(0), Server(1)
    quick.run_for(31)
    assert quick.shown_at_s == [0, 15, 30], "where no build shows them"

    assert server.run_for(10) == 1
    server.viewers.pages = 1
    assert server.run_for(1) == 1
