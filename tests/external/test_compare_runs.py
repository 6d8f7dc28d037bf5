"""One MLPerf job, measured on the AC and on the DC side of its servers: what differs of the two."""

from __future__ import annotations

import csv
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.names import resolved
from goodput_queries.scope import Scope
from goodput_scenarios.comparison.compare import compared
from goodput_scenarios.comparison.gate import Limit
from goodput_scenarios.comparison.sides import Side

if TYPE_CHECKING:
    from goodput_queries.storage.store import LocalStore

ROOT = os.environ.get("GOODPUT_EXTERNAL_DATA")
pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not ROOT, reason="GOODPUT_EXTERNAL_DATA names no folder"),
]
SMC = Path(ROOT or "missing") / "mlperf-train-v4.0-smc"
ORGS = ("smc-ac-power", "smc-dc-power")
SYSTEM, BENCHMARK = "8xSMC-H100-SXM-80GB", "llama2_70b_lora"
RUN = "result_5742-240517053836692164828_3"


def test_the_sides_of_one_job_differ_in_energy_alone(store: LocalStore, tmp_path: Path) -> None:
    """By as much as the readings say; time and GPUs are the same. No gate passes without steps."""
    with tarfile.open(SMC / "smc.tar.gz") as tar:
        wanted = (f"{SYSTEM}.json", f"{RUN}.txt", f"/power/{RUN}/")
        members = [m for m in tar if any(name in m.name for name in wanted)]
        tar.extractall(tmp_path, members, filter="data")
    ingest(store, "auto", [tmp_path], ReadOptions())
    store.build()
    with (SMC / "expected_runs.csv").open() as file:
        joules = {
            row["org"]: float(row["node_joules"])
            for row in csv.DictReader(file)
            if (row["system"], row["benchmark"], row["run"]) == (SYSTEM, BENCHMARK, RUN)
        }

    sides = [
        Side(org, resolved(store, Scope(run=f"{org}/{SYSTEM}/{BENCHMARK}/{RUN}"))) for org in ORGS
    ]
    found = compared(
        lambda sql, scope: store.read(sql, scope=scope), *sides, limits=[Limit("slower", 0.03)]
    )

    change = dict(found.measures.select("measure", "change_ratio").rows())
    assert change["Allocated GPU time"] == change["Goodput of allocated time"] == 0
    expected = joules[ORGS[1]] / joules[ORGS[0]] - 1
    assert change["Energy at node meters"] == pytest.approx(expected, abs=0.002)
    assert expected == pytest.approx(-0.02, abs=0.005)
    differing = found.attributes.filter("is_different")
    assert set(differing["attribute"]) == {"cluster", "node_names"}
    assert found.ledger["change_ratio"].abs().max() == 0
    assert found.verdicts[0][1].outcome == "not comparable"
