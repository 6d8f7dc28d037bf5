# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""Exporters that are scraped: a real HTTP server answers, well or badly."""

import contextlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.ingest.http_pages import send, serving

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.dcgm.live import DcgmLive
from goodput_ingest.sources.dcgm.scrapes import Dcgm
from goodput_queries.errors import IngestError

NOON = datetime(2026, 11, 20, 12)
LINE = 'DCGM_FI_DEV_POWER_USAGE{{UUID="GPU-{gpu}",gpu="0",hpc_job="7"}} {watts}\n'


def page(text, status=200, **more):
    return lambda request: send(request, text, status, **more)


@dataclass
class Exporter:
    """A server whose next answer a test sets; `asked` are the requests' paths and headers."""

    answer: Callable[[Any], None]
    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def reply(self, request):
        """Note a request and answer it."""
        self.asked.append((request.path, dict(request.headers)))
        self.answer(request)


@contextlib.contextmanager
def exporting(text):
    found = Exporter(page(text))
    with serving(found.reply) as address:
        found.url = f"http://{address}"
        yield found


@pytest.fixture
def exporter():
    with exporting(LINE.format(gpu="a", watts=600)) as found:
        yield found


@pytest.fixture
def second():
    with exporting(LINE.format(gpu="b", watts=70)) as found:
        yield found


def poll(store, source, now=NOON):
    return sum(store.load(batch).rows_new for batch in source.poll({}, now))


def test_a_poll_dates_what_the_targets_say_with_its_beginning(store, exporter, second):
    source = DcgmLive(urls=[exporter.url, second.url], cluster="lab")

    poll(store, source)

    rows = store.read("select source, gpu_uuid, ts, power_w from raw.gpu_samples order by 2").rows()
    assert rows == [("dcgm", "GPU-a", NOON, 600.0), ("dcgm", "GPU-b", NOON, 70.0)]
    assert [path for path, _ in exporter.asked] == ["/metrics"]


def test_a_packed_answer_is_read(store, exporter):
    exporter.answer = page(LINE.format(gpu="a", watts=600), is_packed=True)

    assert poll(store, DcgmLive(urls=[exporter.url])) > 0


def test_what_is_recorded_reads_in_as_what_was_loaded(store, exporter, second, tmp_path):
    record = tmp_path / "scrapes.prom"
    source = DcgmLive(urls=[exporter.url, second.url], record_to=record)
    for number in range(2):
        poll(store, source, NOON + timedelta(seconds=30 * number))
    loaded = store.read("select gpu_uuid, ts, power_w from raw.gpu_samples order by all").rows()

    new = [store.load(b) for b in Dcgm(record, ReadOptions()).extract() if b.table == "gpu_samples"]

    assert len(loaded) == 4
    assert sum(one.rows for one in new) == 4
    assert sum(one.rows_new for one in new) == 0


def test_a_bad_line_is_rejected_under_the_target_that_sent_it(store, exporter, second):
    second.answer = page(
        LINE.format(gpu="b", watts=70) + "garbage\n" + LINE.format(gpu="c", watts=1)
    )

    poll(store, DcgmLive(urls=[exporter.url, second.url]))

    line, reason = store.read("select line, reason from raw.rejects").row(0)
    assert line == 2
    assert reason.startswith(f"{second.url}/metrics: the line is not a sample")
    assert store.read("select count(*) from raw.gpu_samples").item() == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (page("", 500), "it answers with status 500, expected 200"),
        (page("", 401), "it denies access (401); check the password"),
        (page("moved", 302), "it answers with status 302, expected 200"),
        (page("<html>hello</html>"), "it answers, but with no metrics of GPUs"),
        (page(""), "it answers, but with no metrics of GPUs"),
        (page("node_load1 1\n"), "it answers, but with no metrics of GPUs"),
        (page("x" * 100_001), "it sends more than 100000 bytes"),
    ],
)
def test_a_target_that_fails_is_reported_in_a_sentence_and_stops_no_other(
    store, exporter, second, answer, why
):
    exporter.answer = answer
    settings = {"answer_max_bytes": 100_000}

    with pytest.raises(IngestError) as caught:
        poll(store, DcgmLive(urls=[exporter.url], **settings))
    poll(store, DcgmLive(urls=[exporter.url, second.url], **settings))

    assert f"dcgm: {exporter.url}/metrics: {why}" in str(caught.value)
    assert store.read("select gpu_uuid from raw.gpu_samples").rows() == [("GPU-b",)]
    (reason,) = store.read("select reason from raw.rejects")["reason"]
    assert f"{exporter.url}/metrics: {why}" in reason


@pytest.mark.parametrize("ask", [lambda s: list(s.poll({}, NOON)), DcgmLive.probe])
def test_nobody_there_is_reported_in_a_sentence(ask):
    with exporting("") as gone:
        source = DcgmLive(urls=[gone.url])

    with pytest.raises(IngestError, match="it cannot be reached"):
        ask(source)


def test_a_password_comes_from_the_environment_or_a_file_and_goes_nowhere_else(
    store, exporter, monkeypatch, tmp_path
):
    monkeypatch.setenv("EXPORTER_PASSWORD", "secret")
    (tmp_path / "password").write_text("secret\n")
    settings = [
        {"password_env": "EXPORTER_PASSWORD"},
        {"password_file": str(tmp_path / "password")},
    ]

    for one in settings:
        poll(store, DcgmLive(urls=[exporter.url], username="us", **one))

    sent = [headers["Authorization"] for _, headers in exporter.asked]
    assert sent == ["Basic " + b64encode(b"us:secret").decode()] * 2
    assert "secret" not in str(store.read("select * from state.ingested").rows())


def test_no_urls_are_refused_at_once():
    with pytest.raises(IngestError, match="no urls are given"):
        DcgmLive(urls=[])


def test_a_probe_says_what_is_there_and_what_could_be(exporter, second):
    second.answer = page("", 500)

    findings = DcgmLive(urls=[exporter.url, second.url]).probe()

    assert findings[0] == f"{exporter.url}/metrics: 1 GPUs, 1 metrics"
    assert findings[1] == f"{second.url}/metrics: it answers with status 500, expected 200."
    assert any(
        "add to the exporter's counters file: DCGM_FI_PROF_SM_ACTIVE," in f for f in findings
    )
    assert not any("POWER_USAGE" in finding for finding in findings)
