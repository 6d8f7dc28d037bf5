"""Runs the example of CONTRIBUTING.md: source, raw table, mart, rule and page, as what it names.

It is a process of its own, whose packages are copies with the example's files in them.
"""

import contextlib
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import goodput_app
from goodput_app.dashboard import flags
from goodput_app.process.store import use_store
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch

NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- UTC


def main(folder):
    """Ingest `input.csv`, build, and print what mart, rejects and page show."""
    flags.IS_EVALUATED = False
    gpu = {"source": "test", "gpu_uuid": "GPU-1"}
    listed = [{**gpu, "cluster": "lab", "node": "n1", "valid_from_at": NOON}]
    moments = [NOON + timedelta(seconds=10 * number) for number in range(240)]
    read = [{**gpu, "gpu_instance": "", "ts": ts, "engine_active_ratio": 0.9, "is_flagged": False}
            for ts in moments]  # fmt: skip
    with contextlib.closing(LocalStore(folder / "goodput.duckdb", threads=1)) as store:
        for table, rows in (("gpus", listed), ("gpu_samples", read)):
            store.load(Batch(table, pl.DataFrame(rows), "test", "test", table))
        ingest.ingest(store, "auto", [folder / "input.csv"], ReadOptions())
        store.build()
        use_store(store)
        app = AppTest.from_file(str(Path(goodput_app.__file__).with_name("dashboard") / "main.py"))
        app._page_hash = calc_hash("racks")
        app._bidi_component_manager = BidiComponentManager()  # else all packages are looked through
        app.run(timeout=60)
        answer = {
            "rows": store.read("select * from marts.inlet_temperatures order by node").rows(),
            "findings": store.read(
                "select node, evidence from marts.findings where rule = 'warm_inlet'"
            ).rows(),
            "rejects": store.read("select line, reason from raw.rejects").rows(),
            "errors": [error.value for error in (*app.exception, *app.error)],
            "titles": [title.value for title in app.title],
            "table": app.dataframe[0].value.to_csv(index=False) if app.dataframe else None,
        }
    print(json.dumps(answer))  # noqa: T201 -- for the test


if __name__ == "__main__":
    main(Path(sys.argv[1]))
