# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""Scrapes of GPU exporters: recorded ones, and targets that are polled."""

from base64 import b64encode
from datetime import datetime, timedelta

import pytest
from tests.ingest.http_pages import exporting
from tests.tables import each

from goodput_ingest.formats.prometheus_text import blocks, series
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.dcgm import scrapes
from goodput_ingest.sources.dcgm.live import DcgmLive
from goodput_ingest.sources.dcgm.scrapes import Dcgm
from goodput_queries.errors import IngestError

NOON = datetime(2026, 11, 20, 12)
LINE = 'DCGM_FI_DEV_POWER_USAGE{{UUID="GPU-{gpu}",gpu="0",hpc_job="7"}} {watts}\n'


def exporter_of(gpu, watts):
    """Make the fixture of an exporter with one GPU."""

    @pytest.fixture
    def found():
        with exporting(LINE.format(gpu=gpu, watts=watts)) as exporter:
            yield exporter

    return found


exporter, second = exporter_of("a", 600), exporter_of("b", 70)


def poll(store, source, now=NOON):
    return sum(store.load(batch).rows_new for batch in source.poll({}, now))


def test_a_poll_dates_what_targets_say_with_its_beginning_packed_or_not(store, exporter, second):
    second.is_packed = True

    poll(store, DcgmLive(urls=[exporter.url, second.url], cluster="lab"))

    rows = store.read("select source, gpu_uuid, ts, power_w from raw.gpu_samples order by 2").rows()
    assert rows == [("dcgm", "GPU-a", NOON, 600.0), ("dcgm", "GPU-b", NOON, 70.0)]
    assert [path for path, _ in exporter.asked] == ["/metrics"]


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
    second.text += "garbage\n" + LINE.format(gpu="c", watts=1)

    poll(store, DcgmLive(urls=[exporter.url, second.url]))

    line, reason = store.read("select line, reason from raw.rejects").row(0)
    assert line == 2
    assert reason.startswith(f"{second.url}/metrics: the line is not a sample")
    assert store.read("select count(*) from raw.gpu_samples").item() == 3


@each(
    ("", 500, "it answers with status 500, expected 200"),
    ("", 401, "it denies access (401); check the password"),
    ("<html>hello</html>", 200, "it answers, but with no metrics of GPUs"),
    ("", 200, "it answers, but with no metrics of GPUs"),
    ("node_load1 1\n", 200, "it answers, but with no metrics of GPUs"),
    ("x" * 100_001, 200, "it sends more than 100000 bytes"),
    ("a 1\n" * 50, 200, "it sends over 40 series"),
)
def test_a_failing_target_is_named_and_stops_no_other(store, exporter, second, text, status, why):
    exporter.text, exporter.status = text, status
    settings = {"answer_max_bytes": 100_000, "answer_max_series": 40}

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


def test_a_password_of_variable_or_file_goes_nowhere_else(store, exporter, monkeypatch, tmp_path):
    monkeypatch.setenv("EXPORTER_PASSWORD", "secret")
    (tmp_path / "password").write_text("secret\n")
    files = {"password_env": "EXPORTER_PASSWORD", "password_file": str(tmp_path / "password")}

    for name, where in files.items():
        poll(store, DcgmLive(urls=[exporter.url], username="us", **{name: where}))

    sent = [headers["Authorization"] for _, headers in exporter.asked]
    assert sent == ["Basic " + b64encode(b"us:secret").decode()] * 2
    assert "secret" not in str(store.read("select * from state.ingested").rows())


def test_a_probe_says_what_is_there_and_what_could_be(exporter, second):
    second.status = 500

    findings = DcgmLive(urls=[exporter.url, second.url]).probe()

    assert findings[0] == f"{exporter.url}/metrics: 1 GPUs, 1 metrics"
    assert findings[1] == f"{second.url}/metrics: it answers with status 500, expected 200."
    assert "add to the exporter's counters file: DCGM_FI_PROF_SM_ACTIVE," in " ".join(findings)
    assert "POWER_USAGE" not in " ".join(findings)


SAMPLE = 'DCGM_FI_DEV_POWER_USAGE{{UUID="GPU-{gpu}",Hostname="n1"{more}}} {value}\n'


def line(value, gpu="a", more=""):
    return SAMPLE.format(value=value, gpu=gpu, more=more)


def mark(minute):
    return f"# scraped_at 2026-11-20T12:{minute:02}:00Z http://n1:9400/metrics\n"


@pytest.fixture
def read(read_text):
    """Return what reads scrapes with this text."""
    return lambda text, name="m.prom", **options: read_text("dcgm", text, name, **options)


def readings(store):
    return store.read("select ts, power_w from raw.gpu_samples order by all").rows()


def test_the_time_in_a_file_comes_before_its_options_and_its_name_may_say_one(store, read):
    read(line(600), "n1_20261120T120000Z.prom")
    text = line(599) + mark(1) + line(601) + line(602).rstrip() + " 1795176120000\n"
    read(text, observed_at=NOON.replace(minute=3))

    found = [(at.minute, power) for at, power in readings(store)]
    assert found == [(0, 600.0), (1, 601.0), (2, 602.0), (3, 599.0)]


@pytest.mark.parametrize(("lines", "beginnings"), [(1, 500_000), (7, 2), (400_000, 500_000)])
def test_what_goes_on_over_blocks_is_reported_as_one(store, read, monkeypatch, lines, beginnings):
    monkeypatch.setattr(scrapes, "PART_LINES", lines)
    monkeypatch.setattr(series, "NUMBERS_MAX", beginnings)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 400)
    job = ',hpc_job="7"'
    text = "".join(mark(minute) + line(600 + minute, more=job) for minute in range(20))

    read(text)

    assert len(readings(store)) == 20
    assert store.read("select count(*) from raw.gpus").item() == 1
    stretch = store.read("select owner, first_seen_at, last_seen_at from raw.gpu_owners").rows()
    assert stretch == [("7", NOON, NOON.replace(minute=19))]


def test_rejects_keep_their_line_over_blocks(store, read, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 400)
    text = "".join(mark(minute) + line(600) + "garbage\n" for minute in range(9))

    read(text)

    lines = store.read("select line from raw.rejects order by line")["line"].to_list()
    assert lines == [3 * n for n in range(1, 10)]


def test_a_scrape_with_bad_lines_alone_keeps_them(store, read):
    with pytest.raises(IngestError, match="not metrics of a GPU exporter"):
        read(line(600).replace("600", "ERROR") + "garbage\n")

    text = line(600) + "\n".join(f"garbage {n}x" for n in range(5)) + "\n"
    head = "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{n}"}} {n}\n' for n in range(9))
    read(mark(0) + head + text)
    assert store.read("select count(*) from raw.rejects where line is not null").item() == 5
