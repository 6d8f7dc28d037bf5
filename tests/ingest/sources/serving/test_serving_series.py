"""Series of serving engines one by one: names, labels, and what is not a reading."""

import polars as pl

from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.serving_metrics import ALL_LABELS, Identity, serving_rows
from goodput_queries.catalog import models


def parsed(text, target="http://gpu-a01:8000/metrics", **given):
    lines = f"# scraped_at 2026-11-24T12:00:00Z {target}\n{text}"
    found = exposition.parse(lines.encode(), KnownSeries(ALL_LABELS))
    return serving_rows(found.points, found.series, found.label_sets, given=Identity(**given))


def test_the_reference_table_is_whole():
    rows = pl.read_csv(models.reference_files()["serving_metrics"])

    assert rows.filter(pl.col("source").is_null() | (pl.col("source") == "")).is_empty()
    assert rows.select("product", "name", "canonical").is_unique().all()
    assert rows.select("canonical", "kind").n_unique() == rows["canonical"].n_unique()


def test_what_a_person_says_of_an_engine_holds_where_no_label_does():
    text = 'vllm:num_requests_running{instance="10.0.0.7:8000"} 1\n'

    found = parsed(text, node="gpu-a03", gpus=("0", "1"), role="decode")[0].rows

    assert found.select("node", "gpu_labels", "role").rows() == [("gpu-a03", ["0", "1"], "decode")]


def test_series_of_no_endpoint_are_rejected():
    [found] = parsed("vllm:num_requests_running 1\n", target="")

    assert found.rows.is_empty()
    assert "which endpoint" in found.rejects[0].reason
