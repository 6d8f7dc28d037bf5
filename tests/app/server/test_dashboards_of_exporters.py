"""The Grafana dashboards show the same of a site whichever exporter reports its GPUs."""

import contextlib
import csv
import re
from datetime import timedelta
from importlib.resources import files

import pytest
from tests.app.receivers import pages
from tests.app.server.conftest import HOUR_S
from tests.app.server.grafana import DASHBOARDS, filled_in, queries, scraping, values
from tests.ingest.golden_cases import golden_path
from tests.queries.conftest import START, Evidence, steps

from goodput_app.server.metrics.exposition import Metrics
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.dcgm.scrapes import Dcgm
from goodput_queries.counted_hours import HOUR_MS, count_settled_hours
from goodput_queries.evidence.plausible import utc_now
from goodput_queries.objectives.goodput import Objective, as_variable

EXPORTERS = {  # recorded text of each, and its GPUs
    "dcgm-exporter": ("two_scrapes_of_a_node_with_mig", 3),
    "nvidia_gpu_exporter": ("nvidia_smi", 1),
    "AMD device metrics exporter": ("amd_without_partitions", 2),
    "OpenTelemetry hw.gpu": ("otel_hardware_metrics", 2),
}
HOURS, EVERY_S = 6, 60


def scraped(case):
    """Return what an exporter printed, once: a line a series, without a time."""
    first = golden_path(f"dcgm/{case}/input.prom").read_text().split("# scraped_at")
    lines = "".join(first[:2]).splitlines()
    return "\n".join(
        {
            line.rpartition("}")[0]: re.sub(r" \d{13}$", "", line)
            for line in lines
            if line.startswith(("DCGM", "nvidia_smi", "gpu_", "hw_", "{"))
        }.values()
    )


def site(store, folder, case):
    """Load six hours of scrapes and a job on each node that they name; build, count some hours."""
    text = scraped(case)
    path = folder / "scrapes.prom"
    path.write_text(
        "".join(
            f"# scraped_at {START + timedelta(seconds=second):%FT%TZ} http://gpu-b01:9400/metrics\n{text}\n"
            for second in range(0, HOURS * HOUR_S, EVERY_S)
        )
    )
    for batch in Dcgm(path, ReadOptions(cluster="lab")).extract():
        store.load(batch)
    store.variables["goodput_objectives"] = as_variable(
        [Objective(0.9, team="nlp"), Objective(0.5, cluster="lab")]
    )
    lab = Evidence(store, "lab")
    lab.watched(HOURS * HOUR_S)
    nodes = store.read(
        "select node, count(distinct gpu_uuid) from raw.gpus group by node order by 1"
    )
    for number, (node, gpus) in enumerate(nodes.rows()):
        lab.job(
            str(number), 0, (HOURS - 1) * HOUR_S, [node], gpus, account="nlp", partition="train"
        )
        lab.events(str(number), steps(1, 29, 0, 600.0), host=node)
    lab.load("rates", [{"price_per_gpu_h": 2}])
    store.build()
    count_settled_hours(store, settle_ms=3 * HOUR_MS, label_values=20)
    now = utc_now()
    failing = Status("dcgm", "http://n1:9400", now, interval_s=30.0)
    live_status.write(store, [failing.answered(now).failed(now, "no connection")])


def panels_without_a_value(prometheus):
    """Return the queries of all dashboards that answer nothing."""
    return [
        query
        for name, dashboard in DASHBOARDS.items()
        for query in queries(name)
        if not values(prometheus, filled_in(prometheus, dashboard, query))
    ]


@pytest.mark.machine
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_each_panel_has_a_value(new_store, tmp_path, exporter):
    case, gpus = EXPORTERS[exporter]
    with contextlib.closing(new_store()) as store:
        site(store, tmp_path, case)
        metrics = Metrics(store, first_wait_s=60)
        metrics.answer()
        answering = pages(lambda _, headers: metrics.answer(headers["Accept"] or ""))
        with answering as url, scraping(url.removeprefix("http://"), tmp_path) as prometheus:
            counted = "sum(increase(goodput_gpu_seconds_total[1d]))"
            prometheus.until(lambda: values(prometheus, counted) == [0.0], "it scraped twice")
            count_settled_hours(store, settle_ms=HOUR_MS, label_values=20)
            prometheus.until(
                lambda: max(values(prometheus, counted), default=0) > 0, "hours were counted"
            )
            # a scrape that came late takes all series away until the next one
            prometheus.until(lambda: not panels_without_a_value(prometheus), "each had a value")
            prometheus.until(
                lambda: values(prometheus, "sum(goodput_gpus)") == [gpus], "all GPUs were there"
            )


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_query_names_a_metric_of_an_exporter(name):
    catalogue = files("goodput_ingest.gpu_metrics") / "catalogue.csv"
    known = {
        row["raw_name"].partition("{")[0]
        for row in csv.DictReader(catalogue.read_text().splitlines())
    }
    assert "DCGM_FI_DEV_GPU_UTIL" in known

    for query in queries(name):
        assert set(re.findall(r"\w+", query)) & known == set(), query
        assert all(one.startswith("goodput_") for one in re.findall(r"(\w+)[{[]", query)), query
