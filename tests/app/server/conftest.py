"""What tests of the server share: a small site to be scraped, the recorded session, tokens."""

import contextlib
from datetime import date

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from tests.app.receivers import pages
from tests.queries.conftest import Evidence, steps, store_of
from tests.two_teams import RED

from goodput_app.access import tokens
from goodput_app.access.settings import AccessSettings, ProxySettings, Token
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.sign_in import SignIn
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_queries.counted_hours import HOUR_MS, count_settled_hours
from goodput_queries.evidence.plausible import utc_now
from goodput_queries.objectives.goodput import Objective, as_variable


@pytest.fixture(scope="session")
def scraped_store(new_store):
    """Give a cluster with three teams, hours of which are counted, and one with a GPU."""
    with contextlib.closing(scraped_site(new_store())) as store:
        yield store


@pytest.fixture
def scraped(scraped_store):
    """Give the host and port at which a server answers as `/metrics` does."""
    metrics = Metrics(scraped_store, first_wait_s=60)
    metrics.answer()
    with pages(lambda _, headers: metrics.answer(headers["Accept"] or "")) as url:
        yield url.removeprefix("http://")


recorded = store_of("recorded_demo")
HOUR_S = 3_600
HOURS = 30
SETTLE_MS = 6 * HOUR_MS


def scraped_site(store):
    """Load, build and count it in an empty store; return the store.

    Team nlp trains for 20 hours, with steps of which checkpoints keep all; vision and speech have
    GPUs of which nothing is known. A node is down in the end.
    """
    store.variables["goodput_objectives"] = as_variable(
        [Objective(0.9, team="nlp"), Objective(0.5, cluster="atlas")]
    )
    atlas = Evidence(store, "atlas")
    atlas.node("n1", 4, model="NVIDIA H200", partitions=("train",))
    atlas.node("n2", 4, model="NVIDIA H200", partitions=("train", "short"))
    atlas.watched(HOURS * HOUR_S)
    atlas.state("n2", "down", 26 * HOUR_S, HOURS * HOUR_S)
    of_train = {"partition": "train"}
    atlas.job("1", 6 * HOUR_S, 26 * HOUR_S, ["n1"], 4, account="nlp", **of_train)
    reported = steps(1, 115, 6 * HOUR_S, 600.0)
    reported.append({"event": "ckpt.durable", "step": 115, "t": 6 * HOUR_S + 115 * 600.0})
    atlas.events("1", reported, host="n1")
    atlas.job("2", 6 * HOUR_S, 20 * HOUR_S, ["n2"], 4, account="vision", **of_train)
    atlas.job("3", 20 * HOUR_S, 26 * HOUR_S, ["n2"], 4, account="speech", partition="short")
    atlas.load("rates", [{"price_per_gpu_h": 2}])
    lab = Evidence(store, "lab")
    lab.node("l1", 1, model="NVIDIA H200")
    lab.samples("l1#0", lab.every(0, HOUR_S, 60), lambda second: second < HOUR_S / 2)
    Evidence(store, "elsewhere").job("9", 0, HOUR_S, ["gone"], 0)
    store.build()
    count_settled_hours(store, settle_ms=SETTLE_MS, label_values=20)
    now = utc_now()
    status = Status("dcgm", "http://n1:9400", now, interval_s=30.0)
    live_status.write(store, [status.answered(now).failed(now, "no connection")])
    return store


ALL, RED_TEAM, NLP, OLD = (tokens.new_token() for _ in range(4))
ACCESS = AccessSettings(
    sign_in="proxy", hosts=("goodput.example.org",), default_role="viewer",
    proxy=ProxySettings(addresses=("10.0.0.0/24",)),
    tokens=(Token("agent", tokens.digest(ALL)),
            Token("red agent", tokens.digest(RED_TEAM), teams=(RED,)),
            Token("nlp report", tokens.digest(NLP), teams=("nlp",)),
            Token("old", tokens.digest(OLD), expires_on=date(2020, 1, 1))),
)  # fmt: skip
URL = "https://goodput.example.org"


async def unrecorded(*_entry):
    """Drop an entry of the audit log."""


def behind_tokens(*routes):
    """Return an application with these routes, behind the check."""
    return Starlette(routes=routes, middleware=[Middleware(SignIn, ACCESS, unrecorded)])
