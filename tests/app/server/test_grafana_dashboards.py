"""The Grafana dashboards: of its schema, and each query answers on a Prometheus that scraped us.

Grafana itself is not run.
"""

import json
import re
import shutil
import urllib.parse
from pathlib import Path

import pytest
from tests.app.receivers import free_port, pages
from tests.app.server.scraped_site import SETTLE_MS
from tests.ingest.sources.prometheus.conftest import RealPrometheus

from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.families import FAMILIES
from goodput_queries.counted_hours import count_settled_hours

FOLDER = Path(__file__).parents[3] / "deploy" / "grafana" / "dashboards"
DASHBOARDS = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
CONFIG = """global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: goodput
    static_configs: [{{targets: ["{target}"]}}]
"""


def queries(name):
    """Return the queries of a dashboard."""
    return [target["expr"] for panel in DASHBOARDS[name]["panels"] for target in panel["targets"]]


@pytest.fixture
def scraped(scraped_store):
    """Give the host and port at which a server answers as `/metrics` does."""
    metrics = Metrics(scraped_store, first_wait_s=60)
    metrics.answer()
    with pages(lambda _, headers: metrics.answer(headers["Accept"] or "")) as url:
        yield url.removeprefix("http://")


@pytest.fixture
def prometheus(scraped, tmp_path):
    """Give a real Prometheus that scrapes it five times a second."""
    if shutil.which("prometheus") is None:
        pytest.skip("the program prometheus is not installed (apt-get install prometheus)")
    server = RealPrometheus(tmp_path, free_port())
    (tmp_path / "prometheus.yml").write_text(CONFIG.format(target=scraped))
    server.start()
    yield server
    server.stop()


def asked(prometheus, path, **fields):
    answer = prometheus.get(f"/api/v1/{path}?{urllib.parse.urlencode(fields)}")
    return json.loads(answer)["data"] if answer else None


def values(prometheus, query):
    found = asked(prometheus, "query", query=query)
    return [float(one["value"][1]) for one in found["result"]] if found else []


def filled_in(prometheus, dashboard, text):
    """Return a query with the dashboard's variables at "All", as Grafana joins their values."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        asks = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        selector = re.sub(r"\$\w+", ".+", asks[1])
        found = asked(prometheus, f"label/{asks[2]}/values", **{"match[]": selector})
        assert found, variable["name"]
        text = text.replace(f"${variable['name']}", "|".join(map(re.escape, found)))
    return text.replace("$__range", "1d")


@pytest.mark.machine
def test_each_query_returns_data(scraped_store, prometheus):
    counted = "sum(increase(goodput_gpu_seconds_total[1d]))"
    prometheus.until(lambda: values(prometheus, counted) == [0.0], "it scraped twice")
    count_settled_hours(scraped_store, settle_ms=SETTLE_MS // 6, label_values=20)
    prometheus.until(lambda: max(values(prometheus, counted), default=0) > 0, "hours were counted")

    empty = [
        query
        for name, dashboard in DASHBOARDS.items()
        for query in queries(name)
        if not values(prometheus, filled_in(prometheus, dashboard, query))
    ]

    assert empty == []
    assert values(prometheus, "up") == [1.0]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_queries_name_metrics_and_labels_that_there_are(name):
    for query in queries(name):
        found = set(re.findall(r"goodput_\w+", query))
        labels = {label for metric in found for label in FAMILIES[metric].labels}
        used = set(re.findall(r"(\w+)=~?\"", query))
        used |= {
            label
            for listed in re.findall(r"(?:by|on|group_left) \(([^)]*)\)", query)
            for label in listed.split(", ")
        }

        assert used - labels <= {"job", "instance"}, query


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_of_grafanas_schema(name):
    """Its types read each field and write the same: none is unknown to them or of another kind."""
    pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk is not installed")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415 -- see above
    from grafana_foundation_sdk.cog.plugins import register_default_plugins  # noqa: PLC0415
    from grafana_foundation_sdk.models.dashboard import Dashboard  # noqa: PLC0415

    register_default_plugins()
    read = Dashboard.from_json(DASHBOARDS[name])

    assert list(lost(DASHBOARDS[name], json.loads(json.dumps(read, cls=JSONEncoder)))) == []


def lost(given, read, place=""):
    """Yield where what was read differs from what was given; more fields are defaults."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            yield from lost(value, read.get(key, "(unknown)"), f"{place}.{key}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif given != read:
        yield f"{place}: {given!r} is read as {read!r}"
