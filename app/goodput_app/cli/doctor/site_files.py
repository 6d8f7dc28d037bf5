"""Part of `goodput doctor`: the facts that only a site's own files give, with the lines of one."""

from collections.abc import Iterator

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


def site_findings(db: str, store: Store | None) -> Iterator[Finding]:  # noqa: ARG001 -- as others
    """Yield what no file of the site said; nothing where nothing was ingested at all."""
    if store is None or store.read("select count(*) = 0 from state.ingested").item():
        return
    for what, table, found, line in FACTS:
        if store.read(f"select count(*) = 0 from raw.{table}").item():
            yield what, "missing", found, line
