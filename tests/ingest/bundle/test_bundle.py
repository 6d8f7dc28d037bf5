"""A bundle opens elsewhere with the same numbers; with pseudonyms it names nobody."""

import contextlib
import zipfile
from datetime import timedelta

import polars as pl
import pytest
from tests.tables import each

from goodput_ingest.bundle import pseudonyms as naming
from goodput_ingest.bundle.cut import LEFT_OUT, Cut, cut_of_run
from goodput_ingest.bundle.pseudonyms import Pseudonyms
from goodput_ingest.bundle.write import write
from goodput_ingest.run import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.bundle import FORMAT_KEY, TABLE_KEY, Bundle
from goodput_queries.catalog import models
from goodput_queries.errors import IngestError, QueryError
from goodput_queries.scope import Scope

LEDGER = """select category, blame, sum(gpu_ms)::bigint as gpu_ms, sum(cost) as cost
    from marts.ledger_blamed_by_node group by all order by all"""
RUN = "lab/main"


@pytest.fixture(scope="module")
def elsewhere(new_store):
    """Give what reads a bundle into a database of its own."""

    @contextlib.contextmanager
    def opened(bundle, *, is_built=True):
        with contextlib.closing(new_store()) as store:
            summary = ingest.ingest(store, "auto", [bundle], ReadOptions())
            assert (summary.failed, summary.refused, summary.unrecognised) == ([], [], [])
            if is_built:
                store.build()
            yield store

    return opened


def window(store):
    """Return the middle third of the evidence."""
    row = store.read("select min(first_at), max(as_of_at) from marts.clusters").row(0)
    third = (row[1] - row[0]) / 3
    start = (row[0] + third).replace(microsecond=0)
    cut = Cut(start, start + third)
    ms = [store.read("select epoch_ms($1)", [at]).item() for at in (cut.start, cut.end)]
    return cut, Scope(from_ms=ms[0], to_ms=ms[1])


def test_the_numbers_of_a_time_range_are_the_same_elsewhere(recorded, elsewhere, tmp_path):
    cut, scope = window(recorded)
    write(recorded, cut, tmp_path / "window.zip")

    with elsewhere(tmp_path / "window.zip") as there:
        assert there.read(LEDGER, scope=scope).equals(recorded.read(LEDGER, scope=scope))
        assert there.read(LEDGER, scope=scope)["gpu_ms"].sum() > 0


@pytest.fixture(scope="module")
def under_pseudonyms(recorded, elsewhere, tmp_path_factory):
    """Give the bundle of a run under pseudonyms, and the database that it gives elsewhere."""
    target = tmp_path_factory.mktemp("bundle") / "run.zip"
    write(recorded, cut_of_run(recorded, RUN), target, Pseudonyms())
    with elsewhere(target) as there:
        yield target, there


def test_a_run_has_the_same_numbers_under_pseudonyms(recorded, under_pseudonyms):
    _, there = under_pseudonyms
    (run,) = there.read(
        "select run_key from marts.runs where held_ms = $1",
        recorded.read("select held_ms from marts.runs where run_key = $1", [RUN]).row(0),
    )["run_key"]

    here = recorded.read(LEDGER, scope=Scope(run=RUN))
    assert there.read(LEDGER, scope=Scope(run=run)).equals(here)


def test_a_bundle_under_pseudonyms_names_nobody(recorded, under_pseudonyms):
    target, _ = under_pseudonyms
    names = recorded.read(
        """select distinct unnest([cluster, user_name, account, job_name, partition] || nodes)
        as name from raw.job_runs"""
    )["name"].drop_nulls()
    assert {"lab", "main"} <= set(names)
    with zipfile.ZipFile(target) as archive:
        tables = [pl.read_parquet(archive.open(n)) for n in archive.namelist() if "parquet" in n]
    written = {value for table in tables for column in table for value in strings(column)}
    assert not written & {name for name in names if len(name) >= naming.SHORTEST}
    assert not [v for v in written if any(name in v.split() for name in names if len(name) > 3)]


def strings(column):
    flat = column.explode() if column.dtype == pl.List(pl.String) else column
    known = column.name in naming.AS_THEY_ARE
    return set() if known or flat.dtype != pl.String else set(flat.drop_nulls())


def test_every_text_column_has_a_rule_for_its_names(store):
    columns = store.read(
        """select distinct column_name from duckdb_columns()
        where schema_name = 'raw' and not list_contains($1, table_name)
            and (data_type like 'VARCHAR%' or data_type = 'JSON')""",
        [sorted(LEFT_OUT)],
    )["column_name"]
    rules = [naming.NODES, naming.NAMES, naming.GPUS, naming.TEXTS, naming.AS_THEY_ARE]

    assert set(columns) == set().union(*rules)
    assert sum(map(len, rules)) == len(columns)


def test_a_name_is_replaced_in_texts_and_with_its_domain():
    names = Pseudonyms(b"key")
    said = {"node": "gpu01", "user_name": "ada", "msg": "ada on gpu01.example.org: rank 3"}
    rows = pl.DataFrame([said])
    names.note(rows)

    replaced = names.replaced(rows).row(0, named=True)
    user, node = replaced["user_name"], replaced["node"]
    assert replaced["msg"] == f"{user} on {node}.example.org: rank 3"
    assert names.replaced(pl.DataFrame({"host": ["gpu01.example.org"]}))["host"].item() == node


def test_a_bundle_that_is_not_whole_has_no_name(recorded, tmp_path, monkeypatch):
    def broken(*_):
        yield from ()
        assert not (tmp_path / "new.zip").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("goodput_ingest.bundle.cut.tables", broken)
    with pytest.raises(KeyboardInterrupt):
        write(recorded, window(recorded)[0], tmp_path / "new.zip")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.zip").write_text("kept")
    with pytest.raises(FileExistsError):
        write(recorded, window(recorded)[0], tmp_path / "old.zip")


def test_an_unknown_run_is_refused(recorded):
    with pytest.raises(QueryError, match="there is no run 'nobody'"):
        cut_of_run(recorded, "nobody")


@each(
    ({FORMAT_KEY: "2", TABLE_KEY: "gpus"}, {"source": ["nvml"]}, "of format 1, found 2"),
    ({FORMAT_KEY: "1", TABLE_KEY: "catalog"}, {"source": ["x"]}, "there is no table 'catalog'"),
    ({FORMAT_KEY: "1", TABLE_KEY: "gpus"}, {"node": ["n"]}, "needs the source it came from"),
)
def test_a_table_that_is_none_of_ours_is_refused(tmp_path, metadata, rows, said):
    path = tmp_path / "table.parquet"
    pl.DataFrame(rows).write_parquet(path, metadata=metadata)
    with pytest.raises(IngestError, match=said):
        list(Bundle(path, ReadOptions()).extract())


def test_raw_tables_come_back_row_for_row(recorded, elsewhere, tmp_path):
    cut, _ = window(recorded)
    everything = Cut(cut.start - timedelta(days=9), cut.end + timedelta(days=9))
    written = write(recorded, everything, tmp_path / "all.zip")

    with elsewhere(tmp_path / "all.zip", is_built=False) as there:
        for model in models.of_layer("raw").values():
            if model.name not in LEFT_OUT:
                sql = f"select * exclude (load_sequence) from {model.qualified_name} order by all"
                assert there.read(sql).equals(recorded.read(sql)), model.name
                assert written.get(model.name, 0) == there.read(sql).height


def test_an_owner_is_still_the_pod_of_the_namespace():
    """Serving engines find their GPUs by it."""
    names = naming.Pseudonyms(b"key")
    row = {"owner": "llm/chat-0", "namespace": "llm", "pod": "chat-0"}

    replaced = names.replaced(pl.DataFrame([row])).row(0, named=True)

    assert replaced["owner"] == f"{replaced['namespace']}/{replaced['pod']}"
    assert not {"llm", "chat-0"} & set(replaced.values())
