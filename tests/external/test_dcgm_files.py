"""Lists of counters that others published; scrapes of theirs: golden cases of dcgm."""

from tests.external_data import EXTERNAL, reading
from tests.tables import each

from goodput_ingest.gpu_metrics import resolve

pytestmark = reading(EXTERNAL)
FOLDER = EXTERNAL / "dcgm"


@each("default-counters", "dcp-metrics-included", "1.x-compatibility-metrics")
def test_every_counter_of_the_exporters_own_files_is_known(name):
    lines = (FOLDER / f"dcgm-exporter__{name}.csv").read_text().splitlines()
    reported = [line.lstrip("# ").split(",", 2) for line in lines if line.count(",") > 1]
    asked = [field.strip() for field, kind, _ in reported if kind.strip() in ("gauge", "counter")]

    unknown = [f for f in asked if (metric := resolve(f)) is None or metric.kind == "unknown"]

    assert len(asked) > 20
    assert unknown == []
