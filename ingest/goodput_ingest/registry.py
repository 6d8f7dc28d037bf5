"""Every source by name: one explicit dictionary, in the order in which `auto` asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_ingest import files
from goodput_ingest.budgets import Budgets
from goodput_ingest.dcgm import Dcgm
from goodput_ingest.flight_recorder import FlightRecorder
from goodput_ingest.goodput_events import GoodputEvents
from goodput_ingest.inventory import Inventory
from goodput_ingest.job_events import JobEvents
from goodput_ingest.job_logs.source import JobLog
from goodput_ingest.job_logs.torchtitan_structured import TorchtitanStructured
from goodput_ingest.kernel_log import KernelLog
from goodput_ingest.kineto import Kineto
from goodput_ingest.kubernetes import KubernetesRecording
from goodput_ingest.mlperf import Mlperf
from goodput_ingest.nccl_debug import NcclDebug
from goodput_ingest.nccl_inspector import NcclInspector
from goodput_ingest.nccl_ras import NcclRas
from goodput_ingest.nccl_tests import NcclTests
from goodput_ingest.node_power import NodePower
from goodput_ingest.nvml_recording import NvmlRecording
from goodput_ingest.otel_spans import OtelSpans
from goodput_ingest.prometheus import PrometheusRecording
from goodput_ingest.rates import Rates
from goodput_ingest.slurm import Slurm
from goodput_ingest.tariffs import Tariffs
from goodput_ingest.telemetry_parquet import TelemetryParquet

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_ingest.source import Source

SOURCES: dict[str, type[Source]] = {
    Slurm.name: Slurm,
    Inventory.name: Inventory,
    Rates.name: Rates,
    Tariffs.name: Tariffs,
    Budgets.name: Budgets,
    PrometheusRecording.name: PrometheusRecording,
    KubernetesRecording.name: KubernetesRecording,
    NvmlRecording.name: NvmlRecording,
    Dcgm.name: Dcgm,
    JobEvents.name: JobEvents,
    NcclInspector.name: NcclInspector,
    FlightRecorder.name: FlightRecorder,
    NcclRas.name: NcclRas,
    NcclTests.name: NcclTests,
    NcclDebug.name: NcclDebug,
    Kineto.name: Kineto,
    KernelLog.name: KernelLog,
    TelemetryParquet.name: TelemetryParquet,
    Mlperf.name: Mlperf,
    NodePower.name: NodePower,
    GoodputEvents.name: GoodputEvents,
    OtelSpans.name: OtelSpans,
    TorchtitanStructured.name: TorchtitanStructured,
    JobLog.name: JobLog,
}


def recognise(path: Path) -> type[Source] | None:
    """Return the source whose format the file has, by its first bytes; None where none knows it."""
    head = files.head(path)
    return next((s for s in SOURCES.values() if s.recognises(path, head)), None)
