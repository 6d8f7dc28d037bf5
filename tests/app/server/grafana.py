"""The dashboards of `deploy/grafana`, and a real Prometheus asked as Grafana asks it."""

import json
import re
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

from tests.ingest.sources.prometheus.conftest import real_prometheus


@contextmanager
def scraping(target, folder, *options):
    """Run a real Prometheus that scrapes a host and port five times a second; skip without one."""
    with real_prometheus(folder, *options) as server:
        server.scrape("goodput", target)
        yield server


FOLDER = Path(__file__).parents[3] / "deploy" / "grafana" / "dashboards"
DASHBOARDS = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}


def queries(name):
    return [target["expr"] for panel in DASHBOARDS[name]["panels"] for target in panel["targets"]]


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
