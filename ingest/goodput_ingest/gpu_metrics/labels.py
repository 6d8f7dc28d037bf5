"""GPU, node and owner of a series, from any exporter's labels in any spelling.

Exporters and releases differ: `UUID`, `uuid` and `gpu_uuid`, `Hostname` and `hostname`, upper-case
names in early AMD releases. `label_roles.csv` has them; the first of a role with a value counts.
Prometheus adds `instance`, and where it may not overwrite it renames what the exporter said to
`exported_...`, so that plain `pod` is then the exporter's own pod. A value that is empty, `none` or
`N/A` is the same as no label.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import polars as pl

from goodput_ingest.formats.pci import pci_bus_id
from goodput_ingest.gpu_metrics.catalogue import rows

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

ROLES: Final[dict[str, tuple[str, ...]]] = {
    role: tuple(row["label"] for row in of_role)
    for role, of_role in groupby(rows("label_roles.csv"), itemgetter("role"))
}
"""Label names by role, in lower case. The labels of `part` split one metric of one GPU into several
series: they become part of its name. `vgpu` is none: the series of each share of a time-sliced GPU
repeat the reading of the whole GPU. A label of `without_pods` is of exporters that know no pods:
`pod` of such a series is their own.
"""
NODE, POD, NAMESPACE, CONTAINER = (ROLES[r] for r in ("node", "pod", "namespace", "container"))
WORKLOAD: Final = ("workload_pod", "workload_namespace", "workload_container")
BY_HOST: Final = "#id:"  # in a name: only its host knows what has this id
HAMI_NVIDIA: Final = "NVIDIA-"  # HAMi writes it before the name of the model
MESSAGE: Final = "err_msg"
MIG_ID, MIG_PROFILE = "gpu_i_id", "gpu_i_profile"
MIG_UUID: Final = "MIG-"
MODEL: Final = r"(?i)^(?:nvidia|amd|intel|tesla|quadro|geforce|instinct)\b.*\d"  # in a free text
MIG_MODEL: Final = r" MIG (\S+)$"
PARTITION, PARTITIONING = "gpu_partition_id", "gpu_compute_partition_type"
INSTANCE, SCRAPE_JOB = "instance", "job"

NAMES: Final = frozenset(
    {
        *(name for names in ROLES.values() for name in names),
        *(f"exported_{name}" for name in ("pod", "namespace", "container")),
        *(MESSAGE, MIG_ID, MIG_PROFILE, PARTITION, PARTITIONING, INSTANCE, SCRAPE_JOB),
    }
)
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
    "user_name": pl.String(),
    "partition": pl.String(),
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
    hardware_name = given.present(*ROLES["hardware_name"])  # Intel's are of parts: compute-all
    named_model = pl.when(hardware_name.str.contains(MODEL)).then(hardware_name)
    partitioning = given.present(PARTITIONING).str.to_lowercase()
    partition = pl.when(partitioning != WHOLE_PARTITION).then(given.present(PARTITION))
    wanted = {
        "uuid": _uuid(given),
        "hardware_id": given.present(*ROLES["hardware_id"]),
        "gpu_instance": pl.coalesce(given.present(MIG_ID), partition, pl.lit("")),
        "mig_profile": given.present(MIG_PROFILE),
        "is_other_partition": (partition != "0").fill_null(value=False),
        "node": _node(given, instance, node),
        "gpu_index": given.first(*ROLES["index"]).cast(pl.Int32, strict=False),
        "slurm_index": given.first(*ROLES["minor"]).cast(pl.Int32, strict=False),
        "pci_bus_id": given.first(*ROLES["pci"]),
        "gpu_model": pl.coalesce(
            given.present(*ROLES["model"]).str.strip_prefix(HAMI_NVIDIA), named_model
        ),
        "driver_version": given.present(*ROLES["driver"]),
        "vbios_version": given.present(*ROLES["vbios"]),
        **_owner(given),
        "hpc_job": given.first(*ROLES["job"]),
        "user_name": given.first(*ROLES["job_user"]),
        "partition": given.first(*ROLES["job_partition"]),
        "message": given.first(MESSAGE, max_chars=MESSAGE_MAX_CHARS),
        "part": _part(given),
    }
    # first a column of its own: what is of no label at all has to be repeated for each row
    read = [name for name in labels.columns if name.lower() in NAMES]
    numbered = labels.select(pl.int_range(pl.len()).alias("row"), *read)
    found = numbered.with_columns(**wanted).select(wanted.keys())
    found = found.with_columns(
        pl.Series("pci_bus_id", [pci_bus_id(text) for text in found["pci_bus_id"]], pl.String)
    )
    named = found.with_columns(gpu_uuid=_identity(is_intel=given.has("pci_bdf")))
    return _with_whole_gpus(named).select(SCHEMA.keys()).cast(pl.Schema(SCHEMA))


def _identity(*, is_intel: bool) -> pl.Expr:
    """Return the GPU of a label set: its UUID, else its place in the node.

    OpenTelemetry's `hw.id` is unique in its host, and so are the UUIDs of Intel's drivers.
    """
    hardware_id = pl.col("hardware_id")
    place = pl.format("{}#{}", "node", "pci_bus_id")
    return pl.coalesce(
        pl.when(hardware_id.str.starts_with("GPU-")).then(hardware_id),
        *([place, "uuid"] if is_intel else ["uuid"]),
        pl.when(hardware_id.is_not_null()).then(
            pl.coalesce(place, pl.format("{}" + BY_HOST + "{}", "node", hardware_id))
        ),
    )


def _with_whole_gpus(found: pl.DataFrame) -> pl.DataFrame:
    """Return label sets whose MIG instances have the UUID of the GPU with their minor number.

    One without a number (Jobstats before it wrote GPU_I_ID) is called by its own UUID.
    """
    is_mig = pl.col("gpu_uuid").str.starts_with(MIG_UUID)
    if not found.select(is_mig.any()).item():
        return found
    whole = pl.when(~is_mig).then("gpu_uuid").max().over("node", "slurm_index")
    is_unnumbered = is_mig & (pl.col("gpu_instance") == "")
    of_uuid = is_unnumbered & whole.is_not_null() & pl.col("slurm_index").is_not_null()
    return found.with_columns(
        gpu_uuid=pl.when(is_mig & (of_uuid | ~is_unnumbered)).then(whole).otherwise("gpu_uuid"),
        gpu_instance=pl.when(of_uuid).then("gpu_uuid").otherwise("gpu_instance"),
        mig_profile=pl.coalesce("mig_profile", pl.col("gpu_model").str.extract(MIG_MODEL)),
        gpu_model=pl.col("gpu_model").str.replace(MIG_MODEL, ""),
    )


class _Labels:
    """Label columns by their name in lower case; two spellings of one name may both be there."""

    def __init__(self, labels: pl.DataFrame) -> None:
        self._columns: dict[str, list[str]] = {}
        for name in labels.columns:
            self._columns.setdefault(name.lower(), []).append(name)

    def has(self, *names: str) -> bool:
        """Say whether any of these labels is there."""
        return any(name in self._columns for name in names)

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
    plain = given.present(*ROLES["uuid"])
    named = pl.when(plain.str.contains(BARE_UUID)).then("GPU-" + plain).otherwise(plain)
    serial = "SN-" + given.present(*ROLES["serial"])
    return pl.coalesce(named, given.present(*ROLES["device_uuid"]), serial)


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
    """Return pod and container of the workload; the exporter's own are nobody's.

    Labels that only an exporter writes come before those that Prometheus adds or renames.
    """
    exported = [given.first(f"exported_{n}") for n in ("pod", "namespace", "container")]
    plain = [given.first(*POD), given.first(*NAMESPACE), given.first(*CONTAINER)]
    said = [given.first(*ROLES[role]) for role in WORKLOAD]
    is_renamed = pl.any_horizontal(*(label.is_not_null() for label in exported))
    # one scrape job renames for all its targets: plain labels are then the exporter's everywhere
    job = given.first(SCRAPE_JOB).fill_null("")
    without_pods = given.first(*ROLES["without_pods"]).is_not_null()
    is_own = is_renamed.any().over(job) | plain[2].str.contains(EXPORTER) | without_pods
    is_own = is_own.fill_null(value=False)
    pod, namespace, container = (
        pl.when(said[0].is_not_null())
        .then(by_exporter)
        .when(is_own)
        .then(renamed)
        .otherwise(of_plain)
        for by_exporter, renamed, of_plain in zip(said, exported, plain, strict=True)
    )
    named = pl.when(namespace.is_null()).then(pod).otherwise(namespace + "/" + pod)
    return {"pod": named, "container": pl.when(pod.is_not_null()).then(container)}


def _part(given: _Labels) -> pl.Expr:
    pieces: Sequence[pl.Expr] = [
        pl.format(name + '="{}"', given.first(name, max_chars=64)) for name in ROLES["part"]
    ]
    return pl.concat_str(pieces, separator=",", ignore_nulls=True)


def _host(instance: pl.Expr) -> pl.Expr:
    return instance.str.replace(PORT, "").str.strip_chars("[]")
