"""Every source by name, in the order in which `auto` asks them."""

from functools import cache
from pathlib import Path

from goodput_ingest.formats import files
from goodput_ingest.source import Source
from goodput_ingest.sources.bundle import Bundle
from goodput_ingest.sources.dcgm.scrapes import Dcgm
from goodput_ingest.sources.gpu_table.source import GpuTable
from goodput_ingest.sources.job_events.job_events import JobEvents
from goodput_ingest.sources.job_logs.mlflow_metrics import MlflowMetrics
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.job_logs.tensorboard import TensorBoard
from goodput_ingest.sources.job_logs.torchtitan_structured import TorchtitanStructured
from goodput_ingest.sources.job_logs.wandb_history import WandbHistory
from goodput_ingest.sources.kernel_log.kernel_log import KernelLog
from goodput_ingest.sources.kubernetes import KubernetesRecording
from goodput_ingest.sources.nccl.debug_log import NcclDebug
from goodput_ingest.sources.nccl.inspector import NcclInspector
from goodput_ingest.sources.nccl.nccl_tests import NcclTests
from goodput_ingest.sources.nccl.ras import NcclRas
from goodput_ingest.sources.node_exporter.scrapes import NodeExporter
from goodput_ingest.sources.node_snapshot.source import NodeSnapshot
from goodput_ingest.sources.nvml.recording import NvmlRecording
from goodput_ingest.sources.prometheus import PrometheusRecording
from goodput_ingest.sources.pytorch.flight_recorder import FlightRecorder
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
from goodput_queries import packages
from goodput_queries.errors import IngestError, PackageError

CORE_SOURCES: dict[str, type[Source]] = {
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
    JobEvents.name: JobEvents,
    NcclInspector.name: NcclInspector,
    FlightRecorder.name: FlightRecorder,
    NcclRas.name: NcclRas,
    NcclTests.name: NcclTests,
    NcclDebug.name: NcclDebug,
    Bundle.name: Bundle,  # before other Parquet: it says what it is
    TelemetryParquet.name: TelemetryParquet,
    TorchtitanStructured.name: TorchtitanStructured,
    WandbHistory.name: WandbHistory,
    MlflowMetrics.name: MlflowMetrics,
    TensorBoard.name: TensorBoard,
}
GENERAL_SOURCES: dict[str, type[Source]] = {  # asked last: their lines are lines of many formats
    JobLog.name: JobLog,
    KernelLog.name: KernelLog,  # a time and a text
}


@cache
def sources() -> dict[str, type[Source]]:
    """Return every source by name, those that installed packages offer too.

    Raises IngestError for one of a package that cannot be loaded or is no source.
    """
    return {**CORE_SOURCES, **_of_packages(), **GENERAL_SOURCES}


def followed() -> tuple[str, ...]:
    """Return the names of formats whose files grow by lines, which a live source can follow."""
    return tuple(name for name, kind in sources().items() if getattr(kind, "is_followed", False))


def _of_packages() -> dict[str, type[Source]]:
    """Return the sources that installed packages offer, by name; ours keep their names."""
    found = {}
    for point in packages.offered(packages.SOURCES):
        try:
            source = packages.load(point)
        except PackageError as error:
            raise IngestError(str(error)) from error
        missing = [one for one in ("name", "recognises", "extract") if not hasattr(source, one)]
        if missing:
            raise IngestError(
                f"{point.value} is no source: it has no {', '.join(missing)} "
                "(goodput_ingest.source.Source)."
            )
        if source.name not in CORE_SOURCES and source.name not in GENERAL_SOURCES:
            found[source.name] = source
    return found


def recognise(path: Path) -> type[Source] | None:
    """Return the source whose format the file has, by its first bytes; None where none knows it."""
    head = files.head(path)
    return next((s for s in sources().values() if s.recognises(path, head)), None)
