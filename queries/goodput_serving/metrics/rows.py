"""Series of serving engines into rows of counters and gauges, and of histograms."""

from typing import Final

import polars as pl

from goodput_ingest.formats.parsed import INSTANT, Parsed, with_rows
from goodput_ingest.source import Reject
from goodput_serving.metrics import catalogue
from goodput_serving.metrics.endpoints import (
    FRONTENDS,
    OF_TARGETS,
    SCHEMA,
    Identity,
    Labels,
    identities,
    numbered,
)

NAME_MAX_CHARS: Final = 255
COUNT_MAX: Final = 2.0**63
KEY: Final = ("endpoint", "engine", "model", "metric")
PLACE: Final = ("node", "pod", "namespace", "pid", "gpu_labels", "role", "product")
NOWHERE: Final = (
    "the series of a serving engine ({}) do not say which endpoint they are of: pass its host, as "
    "in --node gpu-a01, or write `# scraped_at 2026-11-20T12:00:00Z http://gpu-a01:8000/metrics` "
    "before each scrape"
)
NO_BUCKETS: Final = "a sum of a histogram has no buckets beside it; it was left out"
NO_BOUND: Final = "a bucket of a histogram has no number as its label le; it was left out"
NO_NUMBER: Final = "a value of a serving engine is infinite; it was left out"


def serving_rows(
    points: pl.DataFrame,
    series: pl.DataFrame,
    label_sets: pl.DataFrame,
    *,
    cluster: str | None = None,
    given: Identity | None = None,
) -> list[Parsed]:
    """Return rows of serving_samples and serving_histograms; series of others are left out.

    points: series (row of `series`), ts (naive UTC), value; in any order
    series: metric, labels (row of `label_sets`); label_sets: a column a label name
    given: what is known of the engines where no label says it

    A value that is no number leaves no row: engines say NaN where they have none. Series of a
    metric that is in no row of the reference table keep their name and labels; the buckets of such
    a histogram are not read.
    """
    read = _read_as(series, label_sets, given or Identity())
    is_nowhere = read["endpoint"].is_null()
    products = ", ".join(read.filter(is_nowhere)["product"].unique().sort())
    rejects = [Reject(None, NOWHERE.format(products))] if is_nowhere.any() else []
    without_bound = read.filter((pl.col("part") == "bucket") & pl.col("le_s").is_null())["metric"]
    rejects += [Reject(None, NO_BOUND, name) for name in without_bound.unique().sort()]
    infinite = points.filter(pl.col("value").is_infinite()).join(read, on="series", how="semi")
    names = series["metric"].gather(infinite["series"]).unique().sort()
    rejects += [Reject(None, NO_NUMBER, name) for name in names]
    values = _values(points, read.filter(~is_nowhere))
    sums, buckets = (values.filter(pl.col("part") == part) for part in ("sum", "bucket"))
    lone = sums.join(buckets, on=[*KEY, "ts"], how="anti", nulls_equal=True)["metric"]
    rejects += [Reject(None, NO_BUCKETS, name) for name in lone.unique().sort()]
    place = _places(read.filter(~is_nowhere))
    found = [
        Parsed("serving_samples", _samples(values, place, cluster)),
        Parsed("serving_histograms", _histograms(values, place, cluster)),
    ]
    return with_rows(found, rejects)


def _read_as(series: pl.DataFrame, label_sets: pl.DataFrame, given: Identity) -> pl.DataFrame:
    """Return a row for each series and what it is read as, with its engine.

    child: what distinguishes series that are added up
    """
    names = series["metric"].unique().sort()
    of_sets = numbered(label_sets)
    labelled = (
        series.with_row_index("series")
        .filter(pl.col("metric").is_in([name for name in names if catalogue.meanings(name)]))
        .join(of_sets, on="labels", maintain_order="left")
    )
    labels = Labels(of_sets)
    labelled = labelled.with_columns(_own_name(labels).alias("own"))
    parts = [
        _of_meaning(labelled.filter(pl.col("metric") == name), meaning, labels)
        for name in names
        for meaning in catalogue.meanings(name)
    ]
    if not parts:
        return pl.DataFrame(schema=_READ)
    found = pl.concat(parts).join(identities(of_sets, given), on="labels", maintain_order="left")
    is_frontend = (pl.col("role") == "") & pl.col("native").str.contains(FRONTENDS)
    found = found.with_columns(role=pl.when(is_frontend).then(pl.lit("frontend")).otherwise("role"))
    return _without_repeats(found).select(_READ.keys())


def _of_meaning(
    of_series: pl.DataFrame, meaning: catalogue.Meaning, labels: Labels
) -> pl.DataFrame:
    """Return the series of one name that are read as one thing."""
    if meaning.label is not None:
        value = labels.first(meaning.label)
        is_wanted = value.is_not_null() if meaning.wanted == ("*",) else value.is_in(meaning.wanted)
        of_series = of_series.filter(is_wanted)
    child = [
        *(labels.first(name).fill_null("") for name in meaning.summed_over),
        *([labels.first("le").fill_null("")] if meaning.part == "bucket" else []),
    ]
    # one metric under two spellings is one
    exported = pl.col("metric").replace_strict(
        {name: catalogue.as_exported(name) for name in of_series["metric"].unique()},
        return_dtype=pl.String(),
    )
    return of_series.select(
        "series",
        pl.col("labels").cast(pl.UInt32),
        pl.col("metric").alias("native"),
        "own",
        pl.lit(meaning.metric, dtype=pl.String).alias("metric"),
        pl.lit(meaning.product).alias("product"),
        pl.lit(meaning.part).alias("part"),
        pl.lit(meaning.factor).alias("factor"),
        pl.lit(meaning.alternative).alias("alternative"),
        pl.lit(meaning.is_ratio).alias("is_ratio"),
        (labels.first("le").cast(pl.Float64, strict=False) * meaning.factor).alias("le_s"),
        pl.concat_str([exported, *child], separator="\x1f").alias("child"),
    )


def _own_name(labels: Labels) -> pl.Expr:
    """Return the name of a series with the labels that distinguish it: `name{reason="x"}`."""
    pieces = [
        pl.concat_str(pl.lit(f'{name}="'), labels.first(name), pl.lit('"'))
        for name in labels.names
        if name not in OF_TARGETS
    ]
    text = pl.concat_str(pieces, separator=",", ignore_nulls=True) if pieces else pl.lit("")
    is_plain = (text == "") | pl.col("metric").str.ends_with("_info")
    whole = pl.concat_str(pl.col("metric"), pl.lit("{"), text, pl.lit("}"))
    named = pl.when(is_plain).then("metric").otherwise(whole)
    return named.str.slice(0, NAME_MAX_CHARS)


def _without_repeats(found: pl.DataFrame) -> pl.DataFrame:
    """Give series their own name where the engine on the same page exports the metric itself.

    A Dynamo worker's page has the metrics of its vLLM: both count the same requests.
    """
    is_above = pl.col("product").is_in(catalogue.ABOVE_ENGINES)
    is_repeat = is_above & pl.col("metric").is_not_null()
    is_repeat &= (~is_above).any().over("endpoint", "metric")
    is_own = pl.col("metric").is_null() | is_repeat
    found = found.filter(~(is_repeat & (pl.col("part") == "bucket")))
    return found.with_columns(
        *(
            pl.when(is_own).then(own).otherwise(name).alias(name)
            for name, own in {
                "metric": pl.col("own"),
                "child": pl.col("own"),
                "part": pl.lit("value"),
                "factor": pl.lit(1.0),
                "alternative": pl.lit(1),
                "is_ratio": pl.lit(value=False),
            }.items()
        )
    )


def _values(points: pl.DataFrame, read: pl.DataFrame) -> pl.DataFrame:
    """Return a value for each engine, metric, moment and part of a histogram."""
    of_series = ("series", *KEY, "part", "le_s", "factor", "alternative", "is_ratio", "child")
    bucket = (*KEY, "part", "le_s", "ts")
    value = pl.col("value")
    return (
        points.lazy()
        .filter(value.is_finite())
        .join(read.lazy().select(of_series), on="series")
        .with_columns(value * pl.col("factor"))
        # a series that came twice, by two jobs of one server, is one
        .group_by(*bucket, "alternative", "is_ratio", "child")
        .agg(value.max())
        .group_by(*bucket, "alternative")
        .agg(pl.when(pl.col("is_ratio").first()).then(value.max()).otherwise(value.sum()))
        .filter(pl.col("alternative") == pl.col("alternative").min().over(*KEY, "ts"))
        .select(*bucket, "value")
        .collect()
    )


def _places(read: pl.DataFrame) -> pl.DataFrame:
    """Return where each engine is, as far as any of its series says."""
    gpus = pl.col("gpu_labels").explode().drop_nulls().unique().sort()
    return read.group_by(KEY).agg(
        *(pl.col(name).drop_nulls().first() for name in ("node", "pod", "namespace", "pid")),
        pl.when(gpus.len() > 0).then(gpus.implode()).alias("gpu_labels"),
        pl.col("role").filter(pl.col("role") != "").first().fill_null(""),
        pl.col("product").min(),
    )


def _samples(values: pl.DataFrame, place: pl.DataFrame, cluster: str | None) -> pl.DataFrame:
    found = values.filter(pl.col("part") == "value").select(*KEY, "ts", "value")
    return _placed(found, place, cluster, ("ts",))


def _histograms(values: pl.DataFrame, place: pl.DataFrame, cluster: str | None) -> pl.DataFrame:
    """Return the buckets; the sum stands in the row of the last one."""
    is_bucket = (pl.col("part") == "bucket") & pl.col("le_s").is_not_null()
    sums = values.filter(pl.col("part") == "sum").select(
        *KEY, "ts", pl.lit(float("inf")).alias("le_s"), pl.col("value").alias("sum_s")
    )
    found = (
        values.filter(is_bucket & pl.col("value").is_between(0, COUNT_MAX, closed="left"))
        .select(*KEY, "ts", "le_s", pl.col("value").cast(pl.Int64).alias("observations"))
        .join(sums, on=[*KEY, "ts", "le_s"], how="left", maintain_order="left")
    )
    return _placed(found, place, cluster, ("ts", "le_s"))


def _placed(
    found: pl.DataFrame, place: pl.DataFrame, cluster: str | None, order: tuple[str, ...]
) -> pl.DataFrame:
    return (
        found.join(place, on=KEY, maintain_order="left")
        .sort(*KEY, *order)
        .with_columns(pl.col("ts").cast(INSTANT), pl.lit(cluster, pl.String).alias("cluster"))
    )


_READ: Final = {
    "series": pl.UInt32(),
    **SCHEMA,
    "product": pl.String(),
    "metric": pl.String(),
    "part": pl.String(),
    "factor": pl.Float64(),
    "alternative": pl.Int32(),
    "is_ratio": pl.Boolean(),
    "le_s": pl.Float64(),
    "child": pl.String(),
}
