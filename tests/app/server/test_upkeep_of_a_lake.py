"""What a server of a lake does between two builds."""

from tests.queries.lake.conftest import readings

from goodput_app.server.background import Upkeep
from goodput_lake import attached
from goodput_lake.pull import attach
from goodput_lake.tables.lake import Lake
from goodput_queries.errors import StoreError
from goodput_queries.ledger_build.lake import LakeOptions


def test_the_lake_is_looked_into_every_half_a_minute(tmp_path, new_store, monkeypatch, caplog):
    """Publishing that fails is logged; the ledger is up to date nevertheless."""

    def fail(*_):
        raise StoreError("s3://metrics/goodput/ledger: cannot be written")

    lake = Lake.create(str(tmp_path / "lake"), buckets=1)
    store = new_store()
    store.lake_options = LakeOptions(publishes=True)
    attach(store, lake.url)
    monkeypatch.setattr(attached, "publish_noted", fail)
    upkeep = Upkeep(store)
    for number in range(2):
        lake.append(readings(f"d{number}", (30 * number,)))
        upkeep.run()

    assert store.read("select count(*) from state.ingested").item() == 1
    assert [one.message for one in caplog.records if "published" in one.message] == [
        "closed hours were not published: s3://metrics/goodput/ledger: cannot be written"
    ]
