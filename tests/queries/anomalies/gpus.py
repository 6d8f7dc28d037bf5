"""GPUs of one node and their readings, for rules about anomalies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.queries.conftest import Evidence

from goodput_queries.scope import Scope

STEP_S = 30
BUSY = {
    "engine_active_ratio": 0.95, "sm_active_ratio": 0.8, "tensor_active_ratio": 0.45,
    "dram_active_ratio": 0.5, "gpu_busy_ratio": 1.0, "power_w": 600.0, "sm_clock_hz": 1.98e9,
    "gpu_temperature_c": 62.0, "memory_used_bytes": 60 * 10**9,
}  # fmt: skip
IDLE = {
    "engine_active_ratio": 0.0, "sm_active_ratio": 0.0, "tensor_active_ratio": 0.0,
    "dram_active_ratio": 0.0, "gpu_busy_ratio": 0.0, "power_w": 75.0, "sm_clock_hz": 0.345e9,
    "gpu_temperature_c": 33.0, "memory_used_bytes": 10**9,
}  # fmt: skip


@dataclass
class Gpus:
    """Readings of GPUs `n/0`, `n/1` ... of node `n`; a healthy one is never twice the same."""

    evidence: Evidence

    def uuid(self, gpu: str) -> str:
        """Return the identifier of a GPU, of which there is one in all clusters."""
        return f"{self.evidence.name}/{gpu}"

    def node(self, node: str, gpus: int, **more: Any) -> None:
        """Put GPUs into a node."""
        rows = [
            {"gpu_uuid": self.uuid(f"{node}/{i}"), "gpu_index": i, "slurm_index": i}
            for i in range(gpus)
        ]
        of_model = {"gpu_model": "h100", "memory_bytes": 80 * 10**9}
        self.evidence.add("gpus", *rows, node=node, valid_from_at=0, **of_model, **more)

    def read(
        self,
        gpu: str,
        until_s: int,
        values: Callable[[int], dict[str, Any] | None] | dict[str, Any],
        *,
        from_s: int = 0,
        source: str = "dcgm",
        exact: bool = False,
    ) -> None:
        """Load readings every 30 s; `values`: of a second (None: not read), or of all of them.

        exact: as given; else power, temperature and energy move as those of a GPU do.
        """
        rows, energy = [], 1e6
        for number, second in enumerate(range(from_s, until_s + 1, STEP_S)):
            found = values(second) if callable(values) else values
            if found is None:
                continue
            energy += STEP_S * (found.get("power_w") or 0.0)
            row = {"energy_j": energy, "is_flagged": False, **found}
            if not exact:
                row["power_w"] += 2.0 * (number % 3 - 1)
                row["gpu_temperature_c"] += number % 2
            named = {"gpu_uuid": self.uuid(gpu), "gpu_instance": ""}
            rows.append({**named, "ts": self.evidence.at(second), **row})
        self.evidence.load("gpu_samples", rows, source)

    def found(self, mart: str, columns: str = "*", **scope: Any) -> list[dict[str, Any]]:
        """Build and return the rows of a mart, GPUs by their names in the cluster."""
        self.evidence.build()
        sql = f"select {columns} from marts.{mart} order by all"
        rows = self.evidence.read(sql, Scope(**scope)).to_dicts()
        for row in rows:
            if row.get("gpu_uuid"):
                row["gpu_uuid"] = row["gpu_uuid"].removeprefix(self.uuid(""))
        return rows

    def rows(self, mart: str, columns: str = "rule", **scope: Any) -> list[tuple[Any, ...]]:
        """Return what `found` does, as tuples."""
        return [tuple(row.values()) for row in self.found(mart, columns, **scope)]
