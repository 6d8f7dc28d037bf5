"""Journeys on made-up clusters: a driver change to its verdict, a slow tenant to its GPU."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect
from tests import compared_runs
from tests.browser.conftest import serving
from tests.browser.test_journeys import pick_first_row, settled, shoot
from tests.queries.conftest import Evidence
from tests.queries.serving.load import Serving, fleet

from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser


TIMES = "from=2027-01-15T08:00:00Z&to=2027-01-15T10:00:00Z"


@pytest.fixture(scope="module")
def address(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the runs of tests.compared_runs and, in another cluster, engines with two tenants."""
    database = tmp_path_factory.mktemp("made_up") / "runs.duckdb"
    shutil.copyfile(empty_database, database)
    with contextlib.closing(LocalStore(database)) as store:
        compared_runs.load(Evidence(store))
        engines = Evidence(store, "s")
        fleet(engines)
        load = Serving(engines)
        load.engine("pod-0", "llama").log(
            {"arrival": 60.0 + n, "ttft": 8.0, "e2e": 9.0, "tenant": "acme"} for n in range(30)
        )
        load.load()
        store.build()
    with serving(database) as url:
        yield url


def test_from_a_changed_driver_to_what_it_cost(page: Page, address: str) -> None:
    page.goto(f"{address}/compare?to=2027-01-15T08:20:00Z")  # `new` is the latest run
    expect(page.get_by_role("heading", name="Changes between runs")).to_be_visible()
    settled(page)

    pick_first_row(page, "change", param="b")

    change = page.get_by_test_id("stMetric").filter(has_text="Change of speed")
    expect(change).to_contain_text("-5.7 %")
    expect(page.get_by_role("heading", name="What differs")).to_be_visible()
    settled(page)
    assert {"a=c%2Fold", "b=c%2Fnew"} <= set(page.url.partition("?")[2].split("&"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Markdown").click()
    text = download.value.path().read_text()
    assert "| Driver | 580.1 | 580.2 |" in text
    shoot(page, "compare")


def test_from_the_overview_to_the_gpu_of_a_slow_tenant_in_two_clicks(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/?{TIMES}")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    settled(page)

    page.get_by_role("link", name="Serving", exact=True).click()
    expect(page.get_by_text("Slowest tenant: acme, slowest at pod-0")).to_be_visible()
    settled(page)
    shoot(page, "serving")
    page.get_by_role("link", name="Open GPU s/n1#0").click()

    expect(page.get_by_role("heading", name="GPU 0")).to_be_visible()
    settled(page)
    assert "gpu=s%2Fn1%230" in page.url
