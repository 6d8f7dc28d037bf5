"""`goodput build` ends with exit code 1 where the checks fail; `ledger` answers from before."""

from datetime import datetime

import polars as pl
from tests.app.command_line import run

from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch
from goodput_queries.ledger_build import materialise

START = datetime(2026, 11, 20, 14)  # noqa: DTZ001 -- naive UTC


def test_a_refused_build_fails_and_the_ledger_of_before_answers(tmp_path, monkeypatch):
    path = str(tmp_path / "fleet.duckdb")
    store = LocalStore(path)
    gpu = {"source": "t", "cluster": "c", "node": "a", "gpu_uuid": "a#0", "slurm_index": 0}
    state = {"source": "t", "cluster": "c", "node": "a", "state": "up", "start_at": START}
    store.load(Batch("gpus", pl.DataFrame([{**gpu, "valid_from_at": START}]), "t", "t", "1"))
    for number, end in enumerate((START.replace(hour=15), START.replace(hour=16))):
        rows = pl.DataFrame([{**state, "start_at": end.replace(hour=14 + number), "end_at": end}])
        store.load(Batch("node_states", rows, "t", "t", f"state {number}"))
        if number == 0:
            store.build()
    store.close()
    right = materialise.replace_hours

    def wrong(cursor, models, *args, **kwargs):
        done = right(cursor, models, *args, **kwargs)
        if models[0].qualified_name == "intermediate.int_ledger_segments":
            cursor.execute("update intermediate.int_ledger_segments set gpu_ms = gpu_ms + 1")
        return done

    monkeypatch.setattr(materialise, "replace_hours", wrong)
    built = run("build", "--db", path)
    asked = run("ledger", "--db", path, "--format", "csv")

    assert built.exit_code == 1
    assert "the checks of this one failed" in built.output
    assert asked.exit_code == 0
    assert "3600000" in asked.output
    assert "the checks of this one failed" in asked.output
