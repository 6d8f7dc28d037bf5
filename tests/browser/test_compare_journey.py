"""The journey before and after a driver change: from the list of changes to the verdict."""

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

from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser


@pytest.fixture
def address(empty_database: Path, tmp_path: Path) -> Iterator[str]:
    """Serve the runs of tests.compared_runs."""
    database = tmp_path / "runs.duckdb"
    shutil.copyfile(empty_database, database)
    with contextlib.closing(LocalStore(database)) as store:
        compared_runs.load(Evidence(store))
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
