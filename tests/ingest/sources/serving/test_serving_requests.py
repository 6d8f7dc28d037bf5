"""Logs of requests as CSV and JSON lines; series of engines one by one."""

import re

import polars as pl
import pytest

from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.serving_metrics import ALL_LABELS, Identity, serving_rows
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.serving.requests import ServingRequests
from goodput_queries.catalog import models
from goodput_synthetic.serving import (
    Engine,
    Life,
    arrivals,
    request_log,
    request_log_lines,
    serve,
)

BEGIN_MS = 1_795_176_000_000


@pytest.fixture(scope="module")
def loads():
    """Return two engines, the second of which ends in the middle."""
    sent = arrivals(
        seed=5, from_ms=BEGIN_MS, to_ms=BEGIN_MS + 60_000, per_s=lambda _: 3, per_s_max=3,
        tenants=("nlp", "search"),
    )  # fmt: skip
    pod = (("namespace", "llm"), ("pod", "chat-0"))
    return [
        serve(Engine("vllm", "m", "gpu-a01:8000"), sent, [Life(BEGIN_MS, 2**62)], name="a"),
        serve(Engine("vllm", "m", "10.0.0.7:8000", labels=pod), sent,
              [Life(BEGIN_MS, BEGIN_MS + 30_000)], name="b"),
    ]  # fmt: skip


def read(path):
    [batch] = ServingRequests(path, ReadOptions(cluster="lab")).extract()
    assert batch.rejects == []
    return batch.rows


@pytest.mark.parametrize("written", [request_log, request_log_lines])
def test_the_log_of_a_load_is_read_as_its_requests(loads, tmp_path, written):
    path = tmp_path / "requests"
    path.write_text(written(loads))

    assert recognise(path) is ServingRequests
    rows = read(path)

    def ms(name):
        return pl.col(name).dt.epoch("ms")

    found = rows.select(
        *("endpoint", "request_id", ms("arrival_at"), ms("first_token_at"), ms("end_at")),
        *("input_tokens", "output_tokens", "status", "tenant"),
    )
    endpoints = ("gpu-a01:8000", "llm/chat-0:8000")
    assert sorted(found.rows()) == sorted(
        (endpoint, one.request_id, one.arrival_ms, one.first_token_ms, one.end_ms,
         one.input_tokens, one.output_tokens, one.status, one.tenant)
        for endpoint, load in zip(endpoints, loads, strict=True) for one in load.requests
    )  # fmt: skip
    assert set(rows["status"]) == {"ok", "aborted", "error"}


def test_a_request_without_an_id_is_the_same_when_it_is_read_again(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arrival,end,model\n2026-11-24T12:00:00Z,2026-11-24T12:00:01Z,m\n")

    assert read(path)["request_id"].to_list() == read(path)["request_id"].to_list()
    assert read(path)["request_id"].null_count() == 0


REQUESTS = "vllm:num_requests_running 1\n"


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


def test_series_of_no_endpoint_are_rejected_with_the_line_that_would_name_it(tmp_path):
    [found] = parsed(REQUESTS, target="")
    advised = re.search("`(# scraped_at .*)`", found.rejects[0].reason)[1]
    path = tmp_path / "metrics.prom"
    path.write_text(f"{advised}\n{REQUESTS}")

    (batch,) = recognise(path)(path, ReadOptions()).extract()

    assert found.rows.is_empty()
    assert batch.rows["endpoint"].to_list() == ["gpu-a01:8000"]
