"""What the names of serving engines' metrics stand for, by `reference.serving_metrics`.

A metric is renamed from release to release, and for some releases exported under both names: of the
names of one canonical metric those with the lowest `alternative` that an engine exports are read.
"""

import csv
import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, cast

from goodput_queries.catalog import models

Part = Literal["value", "bucket", "sum"]
PREFIXES: Final = {
    "vllm:": "vllm",
    "sglang:": "sglang",
    "trtllm_": "tensorrt-llm",
    "nv_inference_": "triton",
    "nv_trt_llm_": "triton",
    "tgi_": "tgi",
    "dynamo_": "dynamo",
    "inference_model_": "inference-gateway",
    "inference_objective_": "inference-gateway",
    "inference_pool_": "inference-gateway",
    "inference_extension_": "inference-gateway",
    "llm_d_epp_": "inference-gateway",
}
"""Beginnings of names, for metrics that are in no row; the product that exports them."""
ABOVE_ENGINES: Final = ("dynamo", "triton", "inference-gateway")
"""Products that may export on the page of an engine what the engine exports itself."""
SPELLINGS: Final = re.compile("^(?P<ray>ray_)?(?P<product>vllm|sglang)[_:]")
"""What Prometheus (OpenMetrics without colons) and Ray make of `vllm:` and `sglang:`; Ray also
repeats each counter as a gauge without `_total`."""
NOT_READ: Final = "_created"  # when a series began, which prometheus_client writes for each
BUCKET, SUM = "_bucket", "_sum"
NAMES_REMEMBERED: Final = 65_536  # a hostile file may make up names


class _All(Container[str]):
    def __contains__(self, name: object) -> bool:
        return True


ALL_LABELS: Final = _All()


@dataclass(frozen=True)
class Meaning:
    """What a series is read as.

    product: who exports it. metric: the canonical name; None: it is in no row, and kept by its own.
    part: the value, or of a histogram the count of a bucket or the sum.
    factor: value * factor is in the unit of `metric`. label, wanted: only series with one of these
    values of a label are read; "*" is any. summed_over: labels whose series are added up.
    """

    product: str
    metric: str | None
    part: Part = "value"
    factor: float = 1.0
    alternative: int = 1
    label: str | None = None
    wanted: tuple[str, ...] = ()
    summed_over: tuple[str, ...] = ()
    is_ratio: bool = False


@lru_cache(maxsize=NAMES_REMEMBERED)
def meanings(name: str) -> tuple[Meaning, ...]:
    """Return what a series of this name is read as; nothing where no engine exports it.

    Of a histogram that is in no row the buckets are not read: its sum and count are.
    """
    exported = as_exported(name)
    if known := _catalogue().get(exported):
        return known
    if name.startswith("ray_") and exported + "_total" in _catalogue():
        return ()
    name = exported
    product = next((of for prefix, of in PREFIXES.items() if name.startswith(prefix)), None)
    if product is None or name.endswith((NOT_READ, BUCKET)) or _is_count_of_known(name):
        return ()
    return (Meaning(product, None),)


def as_exported(name: str) -> str:
    """Return the name that an engine itself gives a metric, whoever has stored it."""
    return SPELLINGS.sub(r"\g<product>:", name)


def is_serving_metric(name: str) -> bool:
    """Say whether series of this name are read."""
    return bool(meanings(name))


def is_of_engine(name: str) -> bool:
    """Say whether an engine exports series of this name, read or not."""
    return as_exported(name).startswith(tuple(PREFIXES))


def is_histogram_part(name: str) -> bool:
    """Say whether series of this name are parts of a histogram that is read as one."""
    return any(meaning.part != "value" for meaning in meanings(name))


def _is_count_of_known(name: str) -> bool:
    """Say whether a name is the count of a histogram that is read: its last bucket has it."""
    return name.endswith("_count") and name.removesuffix("_count") + BUCKET in _catalogue()


@cache
def _catalogue() -> dict[str, tuple[Meaning, ...]]:
    file = Path(models.reference_files()["serving_metrics"])
    found: dict[str, tuple[Meaning, ...]] = {}
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        ends = {BUCKET: "bucket", SUM: "sum"} if row["kind"] == "histogram" else {"": "value"}
        for end, part in ends.items():
            name = row["name"] + end
            found[name] = (*found.get(name, ()), _meaning(row, cast("Part", part)))
    return found


def _meaning(row: dict[str, str], part: Part) -> Meaning:
    label, _, wanted = row["labels"].partition("=")
    return Meaning(
        product=row["product"],
        metric=row["canonical"],
        part=part,
        factor=float(row["factor"]),
        alternative=int(row["alternative"]),
        label=label or None,
        wanted=tuple(wanted.split("|")) if label else (),
        summed_over=tuple(filter(None, row["summed_over"].split("|"))),
        is_ratio=row["unit"] == "ratio",
    )
