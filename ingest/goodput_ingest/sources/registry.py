"""Every source by name: one explicit dictionary, in the order in which `auto` asks them."""

from pathlib import Path

from goodput_ingest.formats import files
from goodput_ingest.source import Source
from goodput_ingest.sources.bundle import Bundle
from goodput_ingest.sources.dcgm.scrapes import Dcgm
from goodput_ingest.sources.gpu_table.source import GpuTable
from goodput_ingest.sources.job_events.google import GoodputEvents
from goodput_ingest.sources.job_events.job_events import JobEvents
from goodput_ingest.sources.job_events.otel_spans import OtelSpans
from goodput_ingest.sources.job_logs.mlflow_metrics import MlflowMetrics
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.job_logs.tensorboard import TensorBoard
from goodput_ingest.sources.job_logs.torchtitan_structured import TorchtitanStructured
from goodput_ingest.sources.job_logs.wandb_history import WandbHistory
from goodput_ingest.sources.kernel_log.kernel_log import KernelLog
from goodput_ingest.sources.kubernetes import KubernetesRecording
from goodput_ingest.sources.mlperf.node_power import NodePower
from goodput_ingest.sources.mlperf.training_logs import Mlperf
from goodput_ingest.sources.nccl.debug_log import NcclDebug
from goodput_ingest.sources.nccl.inspector import NcclInspector
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_ingest.sources.nccl.ras import NcclRas
from goodput_ingest.sources.node_exporter.scrapes import NodeExporter
from goodput_ingest.sources.node_snapshot.source import NodeSnapshot
from goodput_ingest.sources.nvml.recording import NvmlRecording
from goodput_ingest.sources.operation_trace.source import OperationTrace
from goodput_ingest.sources.prometheus import PrometheusRecording
from goodput_ingest.sources.pytorch.flight_recorder import FlightRecorder
from goodput_ingest.sources.pytorch.kineto import Kineto
from goodput_ingest.sources.serving.requests import ServingRequests
from goodput_ingest.sources.serving.scrapes import ServingMetrics
from goodput_ingest.sources.site.budgets import Budgets
from goodput_ingest.sources.site.carbon import Carbon
from goodput_ingest.sources.site.inventory import Inventory
from goodput_ingest.sources.site.node_states import NodeStates
from goodput_ingest.sources.site.node_tests import NodeTests
from goodput_ingest.sources.site.power_feeds import PowerFeeds
from goodput_ingest.sources.site.rates import Rates
from goodput_ingest.sources.site.tariffs import Tariffs
from goodput_ingest.sources.site.telemetry_parquet import TelemetryParquet
from goodput_ingest.sources.slurm.texts import Slurm

SOURCES: dict[str, type[Source]] = {
    Slurm.name: Slurm,
    Inventory.name: Inventory,
    Rates.name: Rates,
    Tariffs.name: Tariffs,
    Budgets.name: Budgets,
    PowerFeeds.name: PowerFeeds,
    NodeStates.name: NodeStates,
    NodeTests.name: NodeTests,
    Carbon.name: Carbon,
    PrometheusRecording.name: PrometheusRecording,
    KubernetesRecording.name: KubernetesRecording,
    NvmlRecording.name: NvmlRecording,
    NodeSnapshot.name: NodeSnapshot,
    Dcgm.name: Dcgm,
    GpuTable.name: GpuTable,
    NodeExporter.name: NodeExporter,
    ServingMetrics.name: ServingMetrics,
    ServingRequests.name: ServingRequests,
    JobEvents.name: JobEvents,
    NcclInspector.name: NcclInspector,
    FlightRecorder.name: FlightRecorder,
    NcclRas.name: NcclRas,
    NcclTests.name: NcclTests,
    NcclDebug.name: NcclDebug,
    Kineto.name: Kineto,
    Bundle.name: Bundle,  # before other Parquet: it says what it is
    TelemetryParquet.name: TelemetryParquet,
    OperationTrace.name: OperationTrace,
    Mlperf.name: Mlperf,
    NodePower.name: NodePower,
    GoodputEvents.name: GoodputEvents,
    OtelSpans.name: OtelSpans,
    TorchtitanStructured.name: TorchtitanStructured,
    WandbHistory.name: WandbHistory,
    MlflowMetrics.name: MlflowMetrics,
    TensorBoard.name: TensorBoard,
    JobLog.name: JobLog,
    KernelLog.name: KernelLog,  # last: a time and a text are lines of many formats
}


def recognise(path: Path) -> type[Source] | None:
    """Return the source whose format the file has, by its first bytes; None where none knows it."""
    head = files.head(path)
    return next((s for s in SOURCES.values() if s.recognises(path, head)), None)
