"""Which engine a series is of: endpoint, place, engine, model and role, by its labels.

Prometheus adds `instance`, `namespace` and `pod` of the target; the engine adds the model and, of
several engines in one process, the index. An empty value is the same as no label.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from goodput_ingest.gpu_metrics import labels as gpu_labels

TEXT_MAX_CHARS: Final = 255
LABEL: Final = "label "
POD: Final = ("pod", "kubernetes_pod_name")
NAMESPACE: Final = ("namespace", "kubernetes_namespace")
ENGINE: Final = ("engine", "dp_rank")
RAY: Final = ("replicaid", "workerid")  # of engines that Ray exports on one page of the node
MODEL: Final = ("model_name", "model")
ROLE: Final = ("role", "llm_d_ai_role", "engine_type", "dynamo_component")
PID: Final = ("pid", "process_id")
GPU: Final = ("gpu_uuid", "gpu", "uuid")
ROLES: Final = {  # as SGLang, Dynamo, llm-d and sites write them
    "prefill": "prefill",
    "decode": "decode",
    "frontend": "frontend",
    "both": "both",
    "unified": "both",
    "prefill-decode": "both",
    "prefill_decode": "both",
}
FRONTENDS: Final = r"^(?:dynamo_frontend_|inference_|llm_d_epp_)"
ADDRESS: Final = r"^(?:[0-9.]+|\[?[0-9a-fA-F:]*:[0-9a-fA-F:]*\]?)$"
OF_TARGETS: Final = frozenset(
    {
        *POD, *NAMESPACE, *ENGINE, *RAY, *MODEL, *PID, *GPU, *gpu_labels.NODE,
        *("role", "llm_d_ai_role", "instance", "job", "container", "service", "endpoint"),
        *("prometheus", "prometheus_replica", "replica", "cluster", "le"),
        *("component", "nodeaddress", "sessionname", "version"),
    }
)  # fmt: skip
"""Labels that say which engine a series is of, or who scraped it; others distinguish series."""


@dataclass(frozen=True)
class Identity:
    """Settings of the engines that are read, for what no label says.

    gpus: UUIDs, or numbers on the node. role: one of ROLES; a label that differs loses. port: of
    the engine on its node.
    """

    node: str | None = None
    namespace: str | None = None
    pod: str | None = None
    role: str | None = None
    gpus: tuple[str, ...] = ()
    port: str | None = None


SCHEMA: Final[dict[str, pl.DataType]] = {
    "endpoint": pl.String(),
    "node": pl.String(),
    "pod": pl.String(),
    "namespace": pl.String(),
    "pid": pl.Int64(),
    "gpu_labels": pl.List(pl.String()),
    "engine": pl.String(),
    "model": pl.String(),
    "role": pl.String(),
}


def numbered(label_sets: pl.DataFrame) -> pl.DataFrame:
    """Return label sets with their number, `labels`; no label then has the name of a column."""
    number = pl.Series("labels", range(label_sets.height), pl.UInt32)
    return pl.DataFrame(
        [number, *(column.alias(LABEL + column.name) for column in label_sets.get_columns())]
    )


def identities(label_sets: pl.DataFrame, given: Identity) -> pl.DataFrame:
    """Return `labels` and SCHEMA of each `numbered` set; endpoint: null where nothing says it."""
    found = Labels(label_sets)
    instance = found.first("instance")
    host = instance.str.replace(gpu_labels.PORT, "").str.strip_chars("[]")
    port = instance.str.extract(gpu_labels.PORT, 0).fill_null("")
    pod = pl.coalesce(found.first(*POD), _text(given.pod))
    namespace = pl.coalesce(found.first(*NAMESPACE), _text(given.namespace))
    of_pod = pl.concat_str([namespace, pod], separator="/", ignore_nulls=True) + port
    is_node = ~host.str.contains(ADDRESS) & ~host.str.contains(gpu_labels.NO_NODE) & pod.is_null()
    node = pl.coalesce(
        *(found.first(name) for name in gpu_labels.NODE),
        _text(given.node),
        pl.when(is_node).then(host),
    )
    said = [found.first(name).str.to_lowercase() for name in ROLE]
    role = [text.replace_strict(ROLES, default=None, return_dtype=pl.String) for text in said]
    gpus = found.first(*GPU).str.replace_all(" ", "").str.split(",")
    wanted = {
        "endpoint": pl.coalesce(
            pl.when(pod.is_not_null()).then(of_pod),
            instance,
            _text(given.node and ":".join(filter(None, (given.node, given.port)))),
        ),
        "node": node,
        "pod": pod,
        "namespace": pl.when(pod.is_not_null()).then(namespace),
        "pid": found.first(*PID).cast(pl.Int64, strict=False),
        "gpu_labels": pl.lit(list(given.gpus)) if given.gpus else gpus,
        "engine": pl.concat_str(
            [found.first(*RAY), found.first(*ENGINE)], separator="/", ignore_nulls=True
        ),
        "model": found.first(*MODEL).fill_null(""),
        "role": pl.coalesce(_text(given.role), *role, pl.lit("")),
    }
    return label_sets.select("labels", **wanted).cast(pl.Schema({"labels": pl.UInt32(), **SCHEMA}))


class Labels:
    """Label columns by their name in lower case; two spellings of one name may both be there."""

    def __init__(self, label_sets: pl.DataFrame) -> None:
        """Take a frame as `numbered` returns it."""
        self._columns: dict[str, list[str]] = {}
        for name in label_sets.columns:
            if name.startswith(LABEL):
                self._columns.setdefault(name.removeprefix(LABEL).lower(), []).append(name)

    @property
    def names(self) -> list[str]:
        """Return the names, in lower case."""
        return sorted(self._columns)

    def first(self, *names: str) -> pl.Expr:
        """Return the first of these labels that has a value, made fit to be shown and stored."""
        columns = [pl.col(column) for name in names for column in self._columns.get(name, ())]
        if not columns:
            return _text(None)
        texts = [pl.when(column != "").then(column) for column in columns]
        short = pl.coalesce(texts).str.slice(0, TEXT_MAX_CHARS)
        return short.str.replace_all(gpu_labels.CONTROL, "\ufffd")


def _text(value: str | None) -> pl.Expr:
    return pl.lit(value, dtype=pl.String)
