"""GPU, node and owner of a series, from any exporter's labels in any spelling.

Exporters and releases differ: `UUID`, `uuid` and `gpu_uuid`, `Hostname` and `hostname`, upper-case
names in early AMD releases. Prometheus adds `instance`, and where it may not overwrite it renames
what the exporter said to `exported_...`, so that plain `pod` is then the exporter's own pod. A
value that is empty, `none` or `N/A` is the same as no label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from goodput_ingest.formats.pci import pci_bus_id

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT_MAX_CHARS: Final = 255
MESSAGE_MAX_CHARS: Final = 500
CONTROL: Final = r"[\x00-\x1f\x7f]"
BARE_UUID: Final = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
NO_NODE: Final = r"^(?:localhost|localhost\.localdomain|127\.[0-9.]+|::1)$"
PORT: Final = r":[0-9]{1,5}$"
NOT_THERE: Final = r"^(?i)(?:none|n/?a)?$"  # values with which exporters say that there is none
WHOLE_PARTITION: Final = "spx"  # AMD: the whole GPU is one partition
ABSENT: Final = ("n/a", "na", "none", "null", "unknown")  # in lower case: what has no such thing
EXPORTER: Final = "exporter"  # in the name of an exporter's own container

UUID: Final = ("uuid", "gpu_uuid")
SERIAL: Final = "serial_number"
NODE: Final = ("hostname", "exported_hostname", "node", "nodename", "kubernetes_node")
INDEX: Final = ("gpu", "gpu_id", "index")
MINOR: Final = ("dcgm_fi_dev_minor_number", "dcgm_fi_dev_gpu_minor_number")
PCI: Final = ("pci_bus_id", "pci_busid")
MODEL: Final = ("modelname", "model_name", "name", "card_model", "card_series")
DRIVER: Final = ("dcgm_fi_driver_version", "dcgm_fi_system_driver_version", "driver_version")
VBIOS: Final = ("dcgm_fi_dev_vbios_version", "vbios_version")
POD: Final = ("pod", "pod_name")
NAMESPACE: Final = ("namespace", "pod_namespace")
CONTAINER: Final = ("container", "container_name")
JOB: Final = ("hpc_job", "job_id")
MESSAGE: Final = "err_msg"
MIG_ID, MIG_PROFILE = "gpu_i_id", "gpu_i_profile"
PARTITION, PARTITIONING = "gpu_partition_id", "gpu_compute_partition_type"
INSTANCE, SCRAPE_JOB = "instance", "job"
PARTS: Final = (
    *("afid_index", "clock_event", "clock_index", "clock_type", "cpu", "cpucore"),
    *("hbm_index", "health_error_code", "health_watch", "link_index", "link_status", "nvlink"),
    *("nvswitch", "peer_gpu", "pid", "process_id", "severity", "xid"),
)
"""Labels that split one metric of one GPU into several series: they become part of its name.

`vgpu` is none: the series of each share of a time-sliced GPU repeat the reading of the whole GPU.
"""

NAMES: Final = frozenset(
    {
        *UUID, *NODE, *INDEX, *MINOR, *PCI, *MODEL, *DRIVER, *VBIOS, *POD, *NAMESPACE, *CONTAINER,
        *JOB,
        *(f"exported_{name}" for name in ("pod", "namespace", "container")),
        *PARTS, SERIAL, MESSAGE, MIG_ID, MIG_PROFILE, PARTITION, PARTITIONING, INSTANCE,
        SCRAPE_JOB,
    }
)  # fmt: skip
"""All label names that are read, in lower case; a reader may leave out all others."""

SCHEMA: Final[dict[str, pl.DataType]] = {
    "gpu_uuid": pl.String(),
    "gpu_instance": pl.String(),
    "mig_profile": pl.String(),
    "is_other_partition": pl.Boolean(),
    "node": pl.String(),
    "gpu_index": pl.Int32(),
    "slurm_index": pl.Int32(),
    "pci_bus_id": pl.String(),
    "gpu_model": pl.String(),
    "driver_version": pl.String(),
    "vbios_version": pl.String(),
    "pod": pl.String(),
    "container": pl.String(),
    "hpc_job": pl.String(),
    "message": pl.String(),
    "part": pl.String(),
}


def normalise(labels: pl.DataFrame, *, node: str | None = None) -> pl.DataFrame:
    """Return one row of SCHEMA for each row of labels (a column a label name, null where absent).

    node: what the series' node is called where no label says (the nvidia-smi exporter has none).

    gpu_uuid: null where the series is of no GPU (NVSwitch, CPU, the exporter itself)
    gpu_instance: MIG instance or AMD partition, '' for the whole GPU
    is_other_partition: an AMD partition but the first, where sensors of the GPU are not read
    pod: `<namespace>/<pod>`, or null
    part: other labels that distinguish series of one metric, as `link_index="3"`; '' for most
    """
    given = _Labels(labels)
    instance = _host(given.first(INSTANCE))
    partitioning = given.present(PARTITIONING).str.to_lowercase()
    partition = pl.when(partitioning != WHOLE_PARTITION).then(given.present(PARTITION))
    wanted = {
        "gpu_uuid": _uuid(given),
        "gpu_instance": pl.coalesce(given.present(MIG_ID), partition, pl.lit("")),
        "mig_profile": given.present(MIG_PROFILE),
        "is_other_partition": (partition != "0").fill_null(value=False),
        "node": _node(given, instance, node),
        "gpu_index": given.first(*INDEX).cast(pl.Int32, strict=False),
        "slurm_index": given.first(*MINOR).cast(pl.Int32, strict=False),
        "pci_bus_id": given.first(*PCI),
        "gpu_model": given.present(*MODEL),
        "driver_version": given.present(*DRIVER),
        "vbios_version": given.present(*VBIOS),
        **_owner(given),
        "hpc_job": given.first(*JOB),
        "message": given.first(MESSAGE, max_chars=MESSAGE_MAX_CHARS),
        "part": _part(given),
    }
    # first a column of its own: what is of no label at all has to be repeated for each row
    read = [name for name in labels.columns if name.lower() in NAMES]
    numbered = labels.select(pl.int_range(pl.len()).alias("row"), *read)
    rows = numbered.with_columns(**wanted).select(wanted.keys())
    return rows.with_columns(
        pl.Series("pci_bus_id", [pci_bus_id(text) for text in rows["pci_bus_id"]], pl.String)
    ).cast(pl.Schema(SCHEMA))


class _Labels:
    """Label columns by their name in lower case; two spellings of one name may both be there."""

    def __init__(self, labels: pl.DataFrame) -> None:
        self._columns: dict[str, list[str]] = {}
        for name in labels.columns:
            self._columns.setdefault(name.lower(), []).append(name)

    def first(self, *names: str, max_chars: int = TEXT_MAX_CHARS) -> pl.Expr:
        """Return the first of these labels that has a value, made fit to be shown and stored."""
        columns = [pl.col(column) for name in names for column in self._columns.get(name, ())]
        if not columns:
            return pl.lit(None, dtype=pl.String)
        texts = [pl.when(~column.str.contains(NOT_THERE)).then(column) for column in columns]
        return pl.coalesce(texts).str.slice(0, max_chars).str.replace_all(CONTROL, "\ufffd")

    def present(self, *names: str) -> pl.Expr:
        """Return the first of these labels that names something, not that there is none."""
        texts = [self.first(name) for name in names]
        return pl.coalesce(
            pl.when(~text.str.strip_chars("[] ").str.to_lowercase().is_in(ABSENT)).then(text)
            for text in texts
        )


def _uuid(given: _Labels) -> pl.Expr:
    """Return the GPU's UUID as NVML writes it; of an AMD GPU without one its serial number.

    The nvidia-smi exporter leaves out the `GPU-` of its label `uuid`; AMD's `gpu_uuid` has none.
    """
    plain, amd = given.present(UUID[0]), given.present(UUID[1])
    named = pl.when(plain.str.contains(BARE_UUID)).then("GPU-" + plain).otherwise(plain)
    return pl.coalesce(named, amd, "SN-" + given.present(SERIAL))


def _node(given: _Labels, instance: pl.Expr, node: str | None) -> pl.Expr:
    """Return the node: what the exporter says, unless it names itself or nothing in particular.

    Seen as Hostname: the exporter's own pod, and `localhost` with a remote host engine.
    """
    own_pod = given.first("pod")
    candidates = [given.first(name) for name in NODE]
    said = [
        pl.when(~name.str.contains(NO_NODE) & (name != own_pod).fill_null(value=True)).then(name)
        for name in candidates
    ]
    from_instance = pl.when(~instance.str.contains(NO_NODE)).then(instance)
    return pl.coalesce(*said, from_instance, pl.lit(node, dtype=pl.String))


def _owner(given: _Labels) -> dict[str, pl.Expr]:
    """Return pod and container of the workload; the exporter's own are nobody's."""
    exported = [given.first(f"exported_{n}") for n in ("pod", "namespace", "container")]
    plain = [given.first(*POD), given.first(*NAMESPACE), given.first(*CONTAINER)]
    is_renamed = pl.any_horizontal(*(label.is_not_null() for label in exported))
    # one scrape job renames for all its targets: plain labels are then the exporter's everywhere
    job = given.first(SCRAPE_JOB).fill_null("")
    is_own = is_renamed.any().over(job) | plain[2].str.contains(EXPORTER)
    is_own = is_own.fill_null(value=False)
    pod, namespace, container = (
        pl.when(is_own).then(of_exporter).otherwise(of_plain)
        for of_exporter, of_plain in zip(exported, plain, strict=True)
    )
    named = pl.when(namespace.is_null()).then(pod).otherwise(namespace + "/" + pod)
    return {"pod": named, "container": pl.when(pod.is_not_null()).then(container)}


def _part(given: _Labels) -> pl.Expr:
    pieces: Sequence[pl.Expr] = [
        pl.format(name + '="{}"', given.first(name, max_chars=64)) for name in PARTS
    ]
    return pl.concat_str(pieces, separator=",", ignore_nulls=True)


def _host(instance: pl.Expr) -> pl.Expr:
    return instance.str.replace(PORT, "").str.strip_chars("[]")
