# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""Files of scrapes into the store: what rows land, when they are from, what repeats change."""

from datetime import datetime

import pytest

from goodput_ingest.formats.prometheus_text import blocks, series
from goodput_ingest.sources.dcgm import scrapes
from goodput_queries.errors import IngestError

NOON = datetime(2026, 11, 20, 12)
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


# when a scrape was taken


def test_the_name_of_the_file_may_say_it(store, read):
    read(line(600), "n1_20261120T120000Z.prom")

    assert readings(store) == [(NOON, 600.0)]


def test_what_is_in_the_file_comes_before_its_options(store, read):
    text = line(600) + mark(1) + line(601) + line(602).rstrip() + " 1795176120000\n"

    read(text, observed_at=NOON)

    assert readings(store) == [
        (NOON, 600.0),
        (NOON.replace(minute=1), 601.0),
        (NOON.replace(minute=2), 602.0),
    ]


# repeats, growth, blocks


def test_reading_twice_changes_nothing_and_a_grown_file_adds_what_is_new(store, read):
    text = mark(0) + line(600) + mark(1) + line(601)
    read(text)

    again, grown = read(text), read(text + mark(2) + line(602))

    assert (again.rows_new, grown.rows_new) == (0, 1)
    assert [power for _, power in readings(store)] == [600.0, 601.0, 602.0]


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


@pytest.mark.parametrize("label", ["vgpu", "a_label_that_nobody_knows"])
def test_series_of_virtual_gpus_are_one_reading_of_the_device(store, read, label):
    shares = [line(70.5, more=f',pod="p{n}",namespace="ns",{label}="{n}"') for n in range(3)]

    read(mark(0) + "".join(shares))

    assert readings(store) == [(NOON, 70.5)]
    assert store.read("from raw.gpu_samples_other").is_empty()
    assert store.read("select distinct owner from raw.gpu_owners").height == 3
