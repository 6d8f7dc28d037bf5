"""From the `[[collect]]` tables of `goodput.toml` to live sources, each key checked.

    [[collect]]
    source = "prometheus"
    url = "http://prometheus:9090"

The keys of a table are the fields of the source's class. Secrets are never among them: they come
from the environment or a file, whose name is (`password_env`, `token_file`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from goodput_ingest.live.tail import Tail
from goodput_ingest.source import LiveSource
from goodput_ingest.sources.dcgm.live import DcgmLive
from goodput_ingest.sources.kernel_log.live import KernelLogLive
from goodput_ingest.sources.kubernetes.api import KubernetesApi
from goodput_ingest.sources.kubernetes.live import Kubernetes
from goodput_ingest.sources.node_exporter.live import NodeExporterLive
from goodput_ingest.sources.nvml.live import NvmlLive
from goodput_ingest.sources.prometheus.live import Prometheus
from goodput_ingest.sources.registry import followed
from goodput_ingest.sources.slurm.live import SlurmLive
from goodput_queries import packages
from goodput_queries.errors import IngestError

CORE_LIVE: dict[str, type[LiveSource]] = {
    kind.name: kind
    for kind in (
        *(Prometheus, Kubernetes, KubernetesApi, DcgmLive, NodeExporterLive),
        *(NvmlLive, SlurmLive, KernelLogLive),
    )
}
SECRETS = frozenset({"password", "token", "secret", "api_key", "bearer_token"})
ABOVE_ZERO = frozenset({"interval_s", "timeout_s", "sample_s", "window_s", "overlap_s", "parallel"})
INTERVAL_MIN_S = 0.1
FLOAT_MAX = 1e300  # beyond it is infinity


class _Setting(NamedTuple):
    kind: Any  # as `msgspec.convert` takes it
    words: str  # what is expected
    is_needed: bool
    is_path: bool


@dataclass(frozen=True)
class Collector:
    """A live source with its settings, as the poll loop uses it.

    reads: under which name its rows are in the store.
    """

    source: LiveSource
    reads: str

    @property
    def origin(self) -> str:
        """Return the polled origin, as the Data page shows it."""
        return self.source.origin

    @property
    def label(self) -> str:
        """Return the name of the source in messages."""
        return f"{self.reads} ({self.origin})"


@cache
def live() -> dict[str, type[LiveSource]]:
    """Return every live source by name, those that installed packages offer too."""
    found = (packages.load(point) for point in packages.offered(packages.LIVE))
    return CORE_LIVE | {kind.name: kind for kind in found if kind.name not in CORE_LIVE}


def names() -> tuple[str, ...]:
    """Return what a `[[collect]]` table may call its `source`."""
    return tuple(dict.fromkeys([*live(), *followed()]))


def collectors(
    tables: Sequence[Mapping[str, Any]], *, cluster: str | None = None, timezone: str | None = None
) -> list[Collector]:
    """Return the live sources of the tables, in their order; polls nothing.

    cluster, timezone: what holds for sources that do not say theirs. Raises IngestError naming the
    table (from 1), the key, and what was expected.
    """
    found: list[Collector] = []
    for number, table in enumerate(tables, 1):
        defaults = {"cluster": cluster, "timezone": timezone}
        one = _collector(f"[[collect]] {number}", table, defaults)
        for before, other in enumerate(found, 1):
            if (one.reads, one.origin) == (other.reads, other.origin):
                raise IngestError(
                    f"[[collect]] {before} and {number} both poll {one.label}; keep one of them."
                )
        found.append(one)
    return found


def _collector(
    where: str, table: Mapping[str, Any], defaults: Mapping[str, str | None]
) -> Collector:
    given = dict(table)
    name = given.pop("source", None)
    if not isinstance(name, str) or name not in names():
        said = "is missing;" if name is None else f"is {name!r},"
        left_out = packages.left_out(name, packages.LIVE, packages.SOURCES)
        wanted = left_out or f"expected one of {', '.join(names())}"
        raise IngestError(f"{where}: 'source' {said} {wanted}.")
    where = f"{where} ({name})"
    kind: type[LiveSource]
    if name in followed() and (name not in live() or "folder" in given):
        kind, fixed = Tail, {"reads": name}
    else:
        kind, fixed = live()[name], {}
    known = {name: one for name, one in _settable(kind).items() if name not in fixed}
    values = {key: _value(where, key, value, known) for key, value in given.items()}
    for key, default in defaults.items():
        if key in known and default is not None and kind is not SlurmLive:  # which knows its own
            values.setdefault(key, default)
    for key, one in known.items():
        if key not in values and one.is_needed:
            raise IngestError(f"{where}: {key!r} is missing; expected {one.words}.")
    try:
        source = kind(**values, **fixed)
    except IngestError as error:
        raise IngestError(f"{where}: {error}") from error
    return Collector(source, name)


def _settable(kind: Any) -> dict[str, _Setting]:
    """Return the fields of a source that a settings file can contain."""
    hints = get_type_hints(kind)
    found = {}
    for one in fields(kind):
        value, words = _expected(hints[one.name])
        if one.init and not one.name.startswith("_") and value is not None:
            is_needed = one.default is MISSING and one.default_factory is MISSING
            found[one.name] = _Setting(value, words, is_needed, "path" in words)
    return found


def _value(where: str, key: str, value: object, known: Mapping[str, _Setting]) -> Any:
    if key in SECRETS:
        raise IngestError(
            f"{where}: {key!r} would be a secret in a settings file; name the environment variable "
            "or the file that has it (password_env, password_file, token_env, token_file)."
        )
    if key not in known:
        names = sorted(known, key=lambda name: not known[name].is_needed)  # stable
        raise IngestError(f"{where}: there is no setting {key!r}; known: {', '.join(names)}.")
    words = known[key].words
    try:
        found = msgspec.convert(value, known[key].kind)
    except msgspec.ValidationError:
        raise IngestError(f"{where}: {key!r} is {value!r}, expected {words}.") from None
    if key in ABOVE_ZERO and found <= 0:
        raise IngestError(f"{where}: {key!r} is {value!r}, expected {words} above 0.")
    if key == "interval_s" and found < INTERVAL_MIN_S:
        raise IngestError(f"{where}: {key!r} is {value!r}, expected {INTERVAL_MIN_S} or more.")
    return Path(found) if known[key].is_path else found


def _expected(hint: Any) -> tuple[Any, str]:
    """Return the type that a field's value must have, and its words; None: no setting."""
    if get_origin(hint) is UnionType:  # of a type and None
        hint, _ = get_args(hint)
    if get_origin(hint) is Literal:
        return hint, f"one of {', '.join(get_args(hint))}"
    return _KINDS.get(hint, (None, ""))


_Text = Annotated[str, Meta(min_length=1)]
_KINDS: dict[Any, tuple[Any, str]] = {  # by the type of the field
    str: (_Text, "a text in quotes"),
    float: (Annotated[float, Meta(ge=0, le=FLOAT_MAX)], "a number"),
    int: (Annotated[int, Meta(ge=0)], "a whole number"),
    bool: (bool, "true or false"),
    Sequence[str]: (tuple[_Text, ...], 'texts in brackets, as ["a", "b"]'),
    tuple[str, ...]: (tuple[_Text, ...], 'texts in brackets, as ["a", "b"]'),
    Path: (_Text, "a path in quotes"),
}
