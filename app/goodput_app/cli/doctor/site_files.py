"""Part of `goodput doctor`: what only a site's own files say, with the lines of one."""

from collections.abc import Iterator

from goodput_messages.printable import printable
from goodput_queries.database import Store

Finding = tuple[str, str, str, str]  # as in doctor.py: what, status, found, next

FACTS = (  # what, its raw table, what is unknown without it, the lines that add it
    (
        "GPU prices",
        "rates",
        "no rate was ingested: cost is unknown",
        "printf 'gpu_model,price_per_gpu_h\\n,2.50\\n' > rates.csv\ngoodput ingest rates rates.csv",
    ),
    (
        "electricity prices",
        "tariffs",
        "no tariff was ingested: cost of energy is unknown",
        "printf 'price_per_kwh\\n0.20\\n' > tariffs.csv\ngoodput ingest tariffs tariffs.csv",
    ),
    (
        "node states",
        "node_states",
        "none were ingested: free time of nodes is unknown, they may have been down",
        "sacctmgr -P show event > events.txt; goodput ingest slurm events.txt\n"
        '# without Slurm: goodput ingest node-states FILE, see "Site files" in docs/connect.md',
    ),
)


OF_KUBERNETES = {  # the line instead, where Kubernetes is the only scheduler
    "node_states": '[[collect]]\nsource = "kubernetes"\nurl = "http://PROMETHEUS:9090"\n'
    "# a Prometheus that scrapes kube-state-metrics",
}
METRIC_ROW = "{},{},gpu_busy_ratio,0.01,gauge,0,1,none"
METRICS_SHOWN = 3


def site_findings(db: str, store: Store | None) -> Iterator[Finding]:  # noqa: ARG001 -- as others
    """Yield what no file of the site said; nothing where nothing was ingested at all."""
    if store is None or store.read("select count(*) = 0 from state.ingested").item():
        return
    schedulers = store.read(
        "select distinct source from state.ingested where source = 'slurm' or source like 'kube%'"
    )["source"].to_list()
    instead = OF_KUBERNETES if schedulers and "slurm" not in schedulers else {}
    for what, table, found, line in FACTS:
        if store.read(f"select count(*) = 0 from raw.{table}").item():
            yield what, "missing", found, instead.get(table, line)
    yield from _unknown_metrics(store)


def _unknown_metrics(store: Store) -> Iterator[Finding]:
    """Yield which GPU metrics no catalogue has, with the row of a site's own that adds one."""
    names = store.read(
        """select metric from raw.gpu_samples_other
        anti join reference.other_gpu_metrics using (metric)
        group by metric order by count(*) desc, metric"""
    )["metric"].to_list()
    if not names:
        return
    first, more = printable(names[0]), len(names) - METRICS_SHOWN
    shown = ", ".join(map(printable, names[:METRICS_SHOWN])) + (f" and {more} more" * (more > 0))
    found = f"kept under the exporter's names, no page draws them: {shown}"
    row = METRIC_ROW.format(first, first.partition("_")[0])
    line = (
        "# exporters/catalogue.csv in the folder of [plugins], with your metric, scale and range:\n"
        f"raw_name,vendor,metric,scale,kind,low,high,on_mig\n{row}"
    )
    yield "GPU metrics", "missing", found, line
