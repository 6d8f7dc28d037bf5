"""Scrapes that others published: read whole, with the figures that stand in them."""

import pytest
from tests.external_data import EXTERNAL, reading
from tests.tables import each

from goodput_ingest.formats.prometheus_text.exposition import parse
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.gpu_metrics import labels, resolve
from goodput_ingest.sources.registry import recognise

pytestmark = reading(EXTERNAL)
FOLDER = EXTERNAL / "dcgm"
DATADOG = "datadog-integrations-core__dcgm_metrics.txt"
H100 = "nvidia_gpu_exporter__nvidia-h100-80gb-hbm3__590.48.01__"
MIG = "nvidia_gpu_exporter__nvidia-h100-mig__590.48.01__load.prom"
AMD = "rocm-device-metrics-exporter__metrics_mini.prom"
SAMPLES = {DATADOG: 38, f"{H100}idle.prom": 132, f"{H100}load.prom": 138, MIG: 128, AMD: 5}


@pytest.mark.parametrize("name", SAMPLES)
def test_all_samples_are_read_as_prometheus_clients_parser_reads_them(name):
    found = parse((FOLDER / name).read_bytes(), KnownSeries(labels.NAMES))

    assert found.points.height == SAMPLES[name]
    assert found.rejects == []
    assert recognise(FOLDER / name).name == "dcgm"


@each("default-counters", "dcp-metrics-included", "1.x-compatibility-metrics")
def test_every_counter_of_the_exporters_own_files_is_known(name):
    lines = (FOLDER / f"dcgm-exporter__{name}.csv").read_text().splitlines()
    reported = [line.lstrip("# ") for line in lines if line.count(",") > 1]
    fields = [
        (field.strip(), kind.strip())
        for field, kind, _ in (line.split(",", 2) for line in reported)
    ]
    asked = [field for field, kind in fields if kind in ("gauge", "counter")]

    unknown = [f for f in asked if (metric := resolve(f)) is None or metric.kind == "unknown"]

    assert len(asked) > 20
    assert unknown == []
