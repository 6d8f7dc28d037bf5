"""Pages of a database of a lake, which has single readings of recent days only."""

import re
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.queries.lake.conftest import START, readings

from goodput_app.dashboard.data.lake import READS_STORED
from goodput_queries.catalog import models
from goodput_queries.evidence.batch import Batch
from goodput_queries.lake.arrange import READINGS
from goodput_queries.lake.lake import Lake
from goodput_queries.lake.pull import attach
from goodput_queries.ledger_build.distributed.lake_binding import LakeBinding, LakeOptions

DAY_S = 86_400
LAKE = Path(__file__).parents[4] / "docs" / "lake.md"
IN_OTHERS = {"marts.allocated_samples"}  # the Run page then draws the roll-up


@pytest.fixture(scope="module")
def store(new_store, tmp_path_factory):
    """Give a built database with four days of a GPU, which has the readings of two of them."""
    lake = Lake.create(str(tmp_path_factory.mktemp("lake")), cluster="west", buckets=1)
    gpu = {"source": "inventory", "cluster": "west", "node": "n", "gpu_uuid": "GPU-0"}
    lake.append(Batch("gpus", pl.DataFrame(gpu), "inventory", "inventory", "gpus"))
    lake.append(readings("d0", range(0, 3 * DAY_S, 600), gpus=1))
    found = new_store()
    found.lake_binding = LakeBinding(found, LakeOptions(recent_days=2))
    attach(found, lake.url)
    found.build()
    return found


def captions(visit, store, page, day):
    window = {"from": START + timedelta(days=day), "to": START + timedelta(days=day, hours=9)}
    app = visit(store, page, **{name: f"{at:%FT%TZ}" for name, at in window.items()})
    return [one.value for one in app.caption]


def test_a_panel_says_which_readings_are_in_the_lake_only(visit, store):
    """Power over time is drawn from the ten-minute roll-up and lacks nothing."""
    old, recent = (captions(visit, store, "power_and_carbon", day) for day in (0, 2))
    said = [text for text in old if "Single readings before 2026-11-22" in text]
    assert len(said) == 1  # of work by power cap
    assert any("Means of 10m" in text for text in old)
    assert not any("in the lake" in text for text in recent)


def test_the_data_page_names_the_lake(visit, store):
    said = captions(visit, store, "data_health", 0)
    assert any(text.startswith("Loaded from the lake /") for text in said)


def test_the_views_that_lack_readings_are_listed():
    """Those that read them themselves; what reads these lacks as much."""
    staged = {m.qualified_name for m in models.of_layer("staging").values()}
    of_readings = {name for name in staged if models.evidence(name)[0] & set(READINGS)}
    lacking = {
        m.qualified_name
        for m in models.of_layer("marts").values()
        if not m.is_stored and set(m.reads) & of_readings
    }
    named = set(re.findall(r"`(\w+)`", LAKE.read_text()))
    missing = {name for name in lacking - READS_STORED - IN_OTHERS if name[6:] not in named}
    assert missing == set()
