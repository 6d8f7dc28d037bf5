"""What a site adds: log profiles, names of metrics, sources of installed packages."""

import json
import re
from importlib.metadata import EntryPoint

import pytest
from tests.tables import each

from goodput_ingest import site_files
from goodput_ingest.gpu_metrics import catalogue
from goodput_ingest.run import plugins
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs import formats
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.registry import recognise, sources
from goodput_queries import packages
from goodput_queries.errors import IngestError

PROFILE = r"""
name = "ours"
marks = ['OURS']
hints = ["OURS"]
[[line]]
means = "step"
pattern = 'OURS (?P<step>\d+)'
[[example]]
text = "2026-08-20T14:00:00Z OURS 1"
expected = [{event = "step", step = 1}]
"""
METRICS = "raw_name,vendor,metric,scale,kind,low,high,on_mig\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a site's folder; afterwards this process reads by ours alone again."""
    monkeypatch.setattr(site_files, "_folder", [])
    for kind in ("profiles", "exporters"):
        (tmp_path / kind).mkdir()
    yield tmp_path
    site_files._folder.clear()
    formats.read_again()
    catalogue.read_again()


def test_a_log_is_read_by_the_profile_of_the_site(site, tmp_path):
    (site / "profiles" / "ours.toml").write_text(PROFILE)
    log = tmp_path / "train.log"
    log.write_text("2026-08-20T14:00:00Z OURS 7\n2026-08-20T14:00:02Z OURS 8\n")
    before = recognise(log)

    plugins.use_plugins(site)

    assert (before, recognise(log)) == (None, JobLog)
    (batch,) = JobLog(log, ReadOptions()).extract()
    assert batch.rows["step"].to_list() == [7, 8]


def test_a_profile_of_the_site_replaces_ours_of_the_same_name(site):
    (site / "profiles" / "x.toml").write_text(PROFILE.replace('"ours"', '"keras"'))

    plugins.use_plugins(site)

    (keras,) = (one for one in formats.formats() if one.name == "keras")
    assert keras.hints == ("OURS",)


def test_a_metric_of_the_site_is_read_under_its_canonical_name(site):
    (site / "exporters" / "catalogue.csv").write_text(
        f"{METRICS}acme_gpu_load,acme,gpu_busy_ratio,0.01,gauge,0,1,none\n"
    )
    (site / "exporters" / "exporters.csv").write_text("prefix,exporter,unknown\nacme_,acme,kept\n")

    plugins.use_plugins(site)

    load, other = catalogue.resolve("acme_gpu_load"), catalogue.resolve("acme_gpu_fan")
    assert (load.metric, load.scale, other.metric) == ("gpu_busy_ratio", 0.01, "acme_gpu_fan")


CATALOGUE = "exporters/catalogue.csv"


@each(
    ("profiles/a.toml", PROFILE.replace("step = 1", "step = 2"), "step is 1, expected 2"),
    (CATALOGUE, f"{METRICS}a,b,c,x,gauge,0,1,none\n", "scale is 'x', no number"),
    (CATALOGUE, f"{METRICS}a,b,c,1,dial,0,1,none\n", "kind is 'dial', expected"),
    (CATALOGUE, "raw_name\nx\n", "line 2 has no high, kind, low, metric"),
)
def test_a_file_of_the_site_that_is_wrong_is_named_with_the_reason(site, file, text, reason):
    (site / file).write_text(text)
    with pytest.raises(IngestError, match=reason):
        plugins.use_plugins(site)


def test_a_folder_that_is_not_there_is_named(site):
    missing = r"there is no such folder; it is `folder` of \[plugins\]"
    with pytest.raises(IngestError, match=missing):
        plugins.use_plugins(site / "nowhere")


class OfPackage(JobLog):
    """A source of an installed package."""

    name = "of-package"


@pytest.fixture
def offered(monkeypatch):
    """Return what installs a package that offers one source; afterwards it is gone."""

    def install(value):
        point = EntryPoint("of-package", value, packages.SOURCES)
        monkeypatch.setattr(packages, "entry_points", lambda **_: [point])
        sources.cache_clear()

    yield install
    sources.cache_clear()


@each(
    ("json:nothing", "the source of-package (json:nothing) cannot be loaded: module 'json' has"),
    ("json:loads", "json:loads is no source: it has no name, recognises, extract"),
)
def test_a_package_whose_source_is_none_is_named(offered, value, reason):
    offered(value)
    with pytest.raises(IngestError, match=re.escape(reason)):
        sources()


def test_a_source_of_a_package_is_asked_before_those_of_any_text(offered, monkeypatch):
    monkeypatch.setattr(json, "OfPackage", OfPackage, raising=False)
    offered("json:OfPackage")
    assert sources()["of-package"] is OfPackage
    assert list(sources())[-3:] == ["of-package", "job-log", "kernel-log"]


def test_a_package_that_is_gone_offers_nothing(offered):
    offered("gone:Source")
    assert "of-package" not in sources()
