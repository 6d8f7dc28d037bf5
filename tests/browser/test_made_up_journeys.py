"""Journeys on made-up clusters: a driver change, a slow tenant, a run that failed after errors."""

from __future__ import annotations

import contextlib
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error, Page, expect
from tests import compared_runs
from tests.browser.conftest import serving
from tests.browser.test_journeys import click_mark, pick_first_row, settled, shoot
from tests.queries.conftest import Evidence, steps
from tests.queries.serving.load import Serving, fleet

from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.machine


TIMES = "from=2027-01-15T08:00:00Z&to=2027-01-15T10:00:00Z"


def _load_two_racks(made: Evidence) -> None:
    """Load a job on a node in each of two racks; the last GPU is slowed by heat."""
    for node in ("cool-1", "hot-1"):
        made.node(node, 2)
    made.load("node_racks", [
        {"cluster": "hot", "node": f"{rack}-1", "rack": f"rack {rack}"} for rack in ("cool", "hot")
    ])  # fmt: skip
    made.job("90", 3600, 7200, ["cool-1", "hot-1"], 4, job_name="slowed")
    made.load("gpu_samples", [
        {"gpu_uuid": f"hot/{gpu}", "gpu_instance": "", "ts": made.at(s), "power_w": 400.0,
         "gpu_temperature_c": celsius, "engine_active_ratio": 0.9,
         "clocks_event_reasons": 64 if celsius > 85 else 0}
        for gpu, celsius in zip(
            ("cool-1#0", "cool-1#1", "hot-1#0", "hot-1#1"), (50.0, 51.0, 80.0, 90.0), strict=True
        )
        for s in range(3600, 7201, 60)
    ])  # fmt: skip


@pytest.fixture(scope="module")
def address(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the runs of tests.compared_runs and, in other clusters, engines and a failed run."""
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
        fails_after_errors(Evidence(store, "e"))
        _load_two_racks(Evidence(store, "hot"))
        store.build()
    with serving(database) as url:
        yield url


def fails_after_errors(cluster: Evidence) -> None:
    """Load a run whose GPU has uncorrected ECC errors in the minutes before its end."""
    cluster.load("gpus", [{"cluster": "e", "node": "n7", "gpu_uuid": "GPU-ecc", "gpu_index": 3,
                           "gpu_model": "h100", "valid_from_at": cluster.at(0)}])  # fmt: skip
    cluster.job("train", 2_000, 5_000, ["n7"], 1, "FAILED")
    cluster.events("train", steps(1, 29, 2_000, 100), host="n7")
    cluster.load("gpu_samples_other", [
        {
            "gpu_uuid": "GPU-ecc", "gpu_instance": "", "ts": cluster.at(4_600 + 60 * number),
            "metric": "ecc_uncorrected_volatile_total", "value": float(errors),
        }
        for number, errors in enumerate((0, 0, 2, 5))
    ])  # fmt: skip


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
    page.get_by_role("link", name="Open GPU 0, n1").click()

    expect(page.get_by_role("heading", name="GPU 0")).to_be_visible()
    settled(page)
    assert "gpu=s%2Fn1%230" in page.url


def test_from_a_failed_run_to_the_ecc_errors_before_its_end(page: Page, address: str) -> None:
    page.goto(f"{address}/runs?{TIMES}&cluster=e")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    settled(page)
    pick_first_row(page, "verdict")
    page.get_by_role("link", name="Open the run").click()
    expect(page.get_by_text("Failure chain", exact=True)).to_be_visible()
    settled(page)
    expect(page.get_by_text("5 uncorrected ECC errors on n7 GPU 3").first).to_be_attached()
    shoot(page, "failed-run")

    pick_first_row(page, "cause")
    page.get_by_role("link", name="Open GPU 3, n7").click()
    expect(page.get_by_role("heading", name="GPU 3")).to_be_visible()
    settled(page)
    shoot(page, "gpu-with-errors")


def choose(page: Page, label: str, option: str) -> None:
    """Choose an option of a list, which closes when the page is redrawn meanwhile."""
    for _ in range(4):
        with contextlib.suppress(Error):
            page.get_by_label(label).click()
            page.get_by_role("option", name=option).click(timeout=8_000)
            return
        page.keyboard.press("Escape")
    pytest.fail(f"{option} of {label} could not be chosen")


def test_from_the_hottest_rack_to_its_worst_gpu_to_the_run_it_slowed(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/?cluster=hot&{TIMES}")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    settled(page)

    page.get_by_role("link", name="Fleet", exact=True).click()
    expect(page.get_by_role("heading", name="GPUs by rack")).to_be_visible()
    settled(page)
    choose(page, "Colour by", "Temperature")
    expect(page).to_have_url(re.compile("show=gpu_temperature_c"))
    settled(page)
    click_mark(page, "rack-grid", ".bars", -1)

    expect(page.get_by_role("heading", name="GPU 1, hot-1")).to_be_visible()
    settled(page)
    pick_first_row(page, "held")
    page.get_by_role("link", name="Open run").click()
    expect(page.get_by_role("heading", name="slowed")).to_be_visible()
