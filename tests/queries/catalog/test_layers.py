"""Which layer of the SQL files reads which."""

from goodput_queries.catalog import models


def test_only_staging_reads_raw():
    """A rename, a unit or a rule of a source is then settled in one view for all readers."""
    read = {
        (model.qualified_name, table)
        for model in models.build_order()
        if model.layer != "staging"
        for table in model.reads
        if table.startswith("raw.")
    }

    assert read == set()


def test_base_tables_have_names_of_their_own():
    """A batch names its table alone."""
    names = [
        model.name for layer in models.BASE_LAYERS for model in models.of_layer(layer).values()
    ]

    assert len(names) == len(set(names))


def test_counts_of_marts_are_64_bit_integers(evidence):
    """DuckDB's count_if is of 128 bits, which readers get as a float."""
    wide = evidence.store.read(
        """select table_name || '.' || column_name from duckdb_columns()
        where schema_name = 'marts' and data_type = 'HUGEINT'"""
    )

    assert wide.to_series().to_list() == []
