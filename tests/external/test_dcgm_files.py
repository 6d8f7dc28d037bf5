"""Scrapes that others published: read whole, with the figures that stand in them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.formats.prometheus_text.exposition import parse
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.gpu_metrics import labels, missing_counters, resolve
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.dcgm.scrapes import Dcgm
from goodput_ingest.sources.registry import recognise

pytestmark = reading(EXTERNAL)
FOLDER = EXTERNAL / "dcgm"
DATADOG = "datadog-integrations-core__dcgm_metrics.txt"
H100 = "nvidia_gpu_exporter__nvidia-h100-80gb-hbm3__590.48.01__"
MIG = "nvidia_gpu_exporter__nvidia-h100-mig__590.48.01__load.prom"
AMD = "rocm-device-metrics-exporter__metrics_mini.prom"
SAMPLES = {DATADOG: 38, f"{H100}idle.prom": 132, f"{H100}load.prom": 138, MIG: 128, AMD: 5}
NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- moments are naive, in UTC


def read(store, name):
    for batch in Dcgm(FOLDER / name, ReadOptions(observed_at=NOON, node="n1")).extract():
        store.load(batch)


@pytest.mark.parametrize("name", SAMPLES)
def test_all_samples_are_read_as_prometheus_clients_parser_reads_them(name):
    found = parse((FOLDER / name).read_bytes(), KnownSeries(labels.NAMES))

    assert found.points.height == SAMPLES[name]
    assert found.rejects == []
    kind = recognise(FOLDER / name)
    assert kind is not None
    assert kind.name == "dcgm"


@pytest.mark.parametrize(
    ("name", "power_w", "busy", "reasons"),
    [("idle.prom", 69.85, 0.0, 1), ("load.prom", 631.95, 1.0, 0)],
)
def test_an_h100_idle_and_under_load(store, name, power_w, busy, reasons):
    read(store, H100 + name)

    columns = "round(power_w, 2), gpu_busy_ratio, clocks_event_reasons, is_flagged"
    assert store.read(f"select {columns} from raw.gpu_samples").rows() == [
        (power_w, busy, reasons, False)
    ]


def test_a_mig_gpu_under_load_has_power_but_no_utilisation(store):
    read(store, MIG)

    found = store.read("select power_w, gpu_busy_ratio, engine_active_ratio from raw.gpu_samples")
    assert found.rows() == [(433.78, None, None)]


def test_a_scrape_of_dcgm_has_three_gpus_and_rates_declared_counter(store):
    read(store, DATADOG)

    assert store.read("select count(distinct gpu_uuid) from raw.gpus").item() == 3
    power = store.read("select power_w, energy_j from raw.gpu_samples where power_w is not null")
    assert (8.969, 128996.013) in power.rows()


def test_early_amd_names_are_read(store):
    read(store, AMD)

    columns = "gpu_uuid, power_w, gpu_busy_ratio"
    assert store.read(f"select {columns} from raw.gpu_samples").rows() == [
        ("6699c0a8-4200-4242-037f-f97e6cae0f09", 41.0, 0.0)
    ]
    memory = "select value from raw.gpu_samples_other where metric = 'memory_total_bytes'"
    assert store.read(memory).item() == 68_702_000_000


@pytest.mark.parametrize(
    "name", ["default-counters", "dcp-metrics-included", "1.x-compatibility-metrics"]
)
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


def test_the_default_counters_lack_what_distinguishes_a_stall_from_work():
    lines = (FOLDER / "dcgm-exporter__default-counters.csv").read_text().splitlines()
    fields = [line.split(",")[0].strip() for line in lines if line.startswith("DCGM")]

    missing = [line.split(",")[0] for line in missing_counters(fields)]

    assert {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"} <= set(missing)
    assert "DCGM_FI_DEV_DEC_UTIL" not in missing


def test_a_published_kernel_log_has_five_xid_119_of_one_gpu(store):
    options = ReadOptions(zone=ZoneInfo("UTC"), node="node7")
    ingest(store, "kernel-log", [FOLDER / "gpud__dmesg-with-xid-119.log"], options)

    found = store.read("select code, pci_bus_id, count(*) from raw.gpu_events group by all").rows()
    assert found == [(119, "00000000:9b:00.0", 5)]
