"""From `[[collect]]` tables to live sources: every key checked, no secret in a settings file."""

import re
from dataclasses import fields
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.tables import SECRET, each, refuses

from goodput_ingest.live.config import collectors, live, names
from goodput_ingest.live.tail import Tail
from goodput_ingest.source import LiveSource
from goodput_ingest.sources.dcgm.live import DcgmLive
from goodput_ingest.sources.kernel_log.live import KernelLogLive
from goodput_ingest.sources.kubernetes.live import Kubernetes
from goodput_ingest.sources.nvml.live import NvmlLive
from goodput_ingest.sources.prometheus import Prometheus
from goodput_ingest.sources.registry import followed
from goodput_ingest.sources.slurm.live import SlurmLive
from goodput_queries import packages
from goodput_queries.errors import IngestError

URL = "http://127.0.0.1:9090"
LEAST = {
    "prometheus": {"url": URL}, "kubernetes": {"url": URL}, "kubernetes-api": {"url": URL},
    "dcgm": {"urls": ["http://n1:9400"]}, "node-exporter": {"urls": ["http://n1:9100"]},
    "serving-metrics": {"urls": ["http://n1:8000"]},
    **{name: {"folder": "/logs"} for name in followed()}, "kernel-log": {},
}  # fmt: skip
NOT_SETTINGS = {"module", "clock", "booted_at", "memory", "reads"}  # for tests, or of ours


def one(source, **table):
    (found,) = collectors([{"source": source, **table}])
    return found


@pytest.mark.parametrize("name", names())
def test_each_source_is_made_of_the_least_it_needs(name):
    found = one(name, **LEAST.get(name, {}))
    assert isinstance(found.source, LiveSource)
    assert found.reads == name
    assert found.origin


def test_the_rows_of_each_source_are_known_by_its_name():
    assert all(kind.name == name for name, kind in live().items())


@each(
    ({"source": "prometheus", "url": f"{URL}/"}, URL),
    ({"source": "kubernetes", "url": URL}, URL),
    ({"source": "prometheus", "url": URL, "matchers": 'cluster="a"'}, f'{URL} {{cluster="a"}}'),
    ({"source": "dcgm", "urls": ["http://n1:9400", "http://n2:9400"]}, "http://n1:9400 and 1"),
    ({"source": "nvml", "node": "n1"}, "NVML on n1"),
    ({"source": "kernel-log", "node": "n1"}, "journal of n1"),
    ({"source": "slurm", "cluster": "lab"}, "slurm:lab"),
    ({"source": "job-events", "folder": "/logs"}, "/logs"),
)
def test_what_is_asked_is_what_a_source_calls_itself(table, origin):
    assert collectors([table])[0].origin.startswith(origin)


def test_the_kernel_log_is_this_machines_or_that_of_files():
    assert isinstance(one("kernel-log").source, KernelLogLive)
    source = one("kernel-log", folder="/var/log", pattern="kern.log").source
    assert isinstance(source, Tail)
    assert (source.reads, source.pattern) == ("kernel-log", "kern.log")


@each(Prometheus, Kubernetes, DcgmLive, NvmlLive, SlurmLive, KernelLogLive, Tail)
def test_every_field_that_is_a_setting_can_be_set(kind):
    """A field of a type that no settings file can hold would be left out without a word."""
    name = "job-log" if kind is Tail else kind.name
    with pytest.raises(IngestError) as caught:
        one(name, **LEAST.get(name, {}), nonsense=1)
    known = str(caught.value).split("known: ")[1].rstrip(".").split(", ")

    wanted = {f.name for f in fields(kind) if f.init and not f.name.startswith("_")}
    assert set(known) == wanted - NOT_SETTINGS


def test_values_reach_the_source():
    settings = {"interval_s": 15, "is_certificate_checked": False, "record_to": "/var/scrapes"}
    source = one("dcgm", urls=["http://n1:9400"], **settings).source

    assert (source.urls, source.interval_s) == (("http://n1:9400",), 15.0)
    assert source.record_to == Path("/var/scrapes")
    assert not source.is_certificate_checked
    assert one("slurm", form="json").source.form == "json"


def test_the_cluster_of_a_site_is_that_of_sources_that_name_none():
    tables = [
        {"source": "prometheus", "url": URL}, {"source": "dcgm", "urls": [URL], "cluster": "other"},
        {"source": "job-log", "folder": "/logs"}, {"source": "slurm"},
    ]  # fmt: skip

    found = [c.source for c in collectors(tables, cluster="lab", timezone="Europe/Berlin")]

    assert [source.cluster for source in found] == ["lab", "other", "lab", None]
    assert found[2].timezone == "Europe/Berlin"


test_a_table_of_no_known_source_is_named = refuses(
    IngestError,
    lambda table: collectors([table]),
    ({}, "[[collect]] 1: 'source' is missing; expected one of prometheus, kubernetes, "),
    ({"source": "nope"}, "[[collect]] 1: 'source' is 'nope', expected one of prometheus, "),
    ({"source": 3}, "[[collect]] 1: 'source' is 3, expected one of prometheus, "),
)


def test_a_source_of_a_package_that_is_left_out_names_the_package(monkeypatch):
    point = EntryPoint("tides", "moon_tides.live:Tides", packages.LIVE)
    monkeypatch.setattr(packages, "declared", lambda group: [point] * (group == packages.LIVE))
    with pytest.raises(IngestError, match="is 'tides', of the package moon_tides, which is not "):
        collectors([{"source": "tides"}])


ON_URL = {"url": URL}
WRONG = [
    ("prometheus", {"uri": URL}, "there is no setting 'uri'; known: url, username, "),
    ("prometheus", {}, "'url' is missing; expected a text in quotes."),
    ("job-events", {}, "'folder' is missing; expected a text in quotes."),
    ("prometheus", {**ON_URL, "interval_s": "30"}, "'interval_s' is '30', expected a number."),
    ("nvml", {"interval_s": True}, "'interval_s' is True, expected a number."),
    ("nvml", {"interval_s": float("inf")}, "'interval_s' is inf, expected a number."),
    ("nvml", {"interval_s": 0}, "'interval_s' is 0, expected a number above 0."),
    ("nvml", {"interval_s": 0.001}, "'interval_s' is 0.001, expected 0.1 or more."),
    ("prometheus", {**ON_URL, "overlap_s": 0}, "'overlap_s' is 0, expected a number above 0."),
    ("dcgm", {"urls": "http://n1"}, "'urls' is 'http://n1', expected texts in brackets, as ["),
    ("dcgm", {"urls": [URL], "parallel": 2.5}, "'parallel' is 2.5, expected a whole number."),
    ("dcgm", {"urls": [URL], "is_certificate_checked": "no"},
     "'is_certificate_checked' is 'no', expected true or false."),
    ("slurm", {"form": "xml"}, "'form' is 'xml', expected one of text, json."),
    ("prometheus", {"url": "ftp://x"}, "ftp://x: this is not the URL of a server; write http:"),
    ("dcgm", {"urls": []}, "dcgm: no urls are given"),
    ("nvml", {"sample_s": float("nan")}, "'sample_s' is nan, expected a number."),
    ("nvml", {"sample_s": 5.0, "slow_s": 1.0}, "nvml: sample_s is 5 and slow_s 1; expected "),
    ("nvml", {"sample_s": 0.1, "slow_s": 1.0}, "nvml: sample_s is 0.1 and slow_s 1; expected "),
]  # fmt: skip


test_a_wrong_setting_is_named = refuses(
    IngestError,
    lambda source, settings: one(source, **settings),
    *((source, settings, f"[[collect]] 1 ({source}): {said}") for source, settings, said in WRONG),
)


test_a_secret_in_a_settings_file_is_refused_and_not_repeated = refuses(
    IngestError,
    lambda key: one("prometheus", url=URL, **{key: SECRET}),
    *((key, "name the environment variable or the") for key in ("password", "token", "secret")),
)


def test_two_tables_that_ask_the_same_are_one_too_many():
    asked = {"source": "prometheus", "url": URL}
    tables = [{"source": "slurm"}, asked, {**asked, "url": f"{URL}/", "interval_s": 5}]

    both = f"[[collect]] 2 and 3 both poll prometheus ({URL}); keep one of them."
    with pytest.raises(IngestError, match=re.escape(both)):
        collectors(tables)
    assert len(collectors([asked, {"source": "kubernetes", "url": URL}])) == 2
