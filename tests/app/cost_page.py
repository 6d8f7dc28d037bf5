"""What tests of the Cost page share: a small priced fleet, and reading what the page shows."""

import hashlib
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

HOSTILE = "<img src=x onerror=alert(1)> [x](http://evil) $x$ `a` :red[z]"
SACCT = f"""Cluster|JobID|JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|\
NNodes|NodeList|AllocTRES|JobName
c|1|1|ann|nlp|gpu|COMPLETED|{{day}}08:00:00|{{day}}08:00:00|{{day}}08:00:00|{{day}}14:00:00|\
1|a|gres/gpu=4|train
c|2|2|eve|{HOSTILE}|gpu|COMPLETED|{{day}}09:00:00|{{day}}15:00:00|{{day}}15:00:00|\
{{day}}16:00:00|1|a|gres/gpu=1|other
c|3|3|ann|nlp|gpu|COMPLETED|{{next}}09:00:00|{{next}}09:00:00|{{next}}09:00:00|\
{{next}}10:00:00|1|a|gres/gpu=1|later
"""
PRICED = {
    "rates": "price_per_gpu_h,note\n2,contract 4711\n",
    "budgets": "account,cost_per_month\nnlp,300\n",
}
DAY = date(2026, 11, 19)


def cost_file(filled, money, accounting=""):
    """Return a database with these jobs and prices, which is built once; to be copied."""
    accounting = accounting or SACCT.format(day="2026-11-19T", next="2026-11-20T")

    def fill(store):
        folder = Path(store.path).parent
        (folder / "sacct.txt").write_text(accounting)
        ingest(store, "slurm", [folder / "sacct.txt"], ReadOptions(zone=ZoneInfo("UTC")))
        for source, text in money.items():
            (folder / f"{source}.csv").write_text(text)
            ingest(store, source, [folder / f"{source}.csv"], ReadOptions())
        store.build()

    content = hashlib.sha256(repr((sorted(money.items()), accounting)).encode()).hexdigest()
    return filled(f"cost-{content[:16]}", fill)
