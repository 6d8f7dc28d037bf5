"""Tables that a site writes: the GPU inventory, prices."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.rates import Rates
from goodput_queries.errors import IngestError


def test_racks_that_are_read_again_replace_those_before(tmp_path, whole_store):
    file = tmp_path / "inventory.csv"
    for rack in ("wrong", "right", "wrong"):
        file.write_text(f"node,gpus,rack\nn1,8,{rack}\n")
        ingest(whole_store, "auto", [file], ReadOptions())

    assert whole_store.read("select node, rack from staging.stg_node_racks").rows() == [
        ("n1", "wrong")
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("node,gpus,color", "'color' is not known"),
        ("gpus,gpu_model", "'node' is missing"),
        ("node,gpus,gpus", "twice"),
    ],
)
def test_a_header_with_other_columns_is_refused(read_text, header, expected):
    with pytest.raises(IngestError, match=expected):
        read_text("inventory", f"{header}\n")


def test_a_new_price_replaces_the_old_one_of_the_same_hour(read_text, store):
    for price in ("2.00", "3.00"):
        read_text("rates", f"price_per_gpu_h\n{price}\n")

    assert store.read("select price_per_gpu_h from raw.rates").rows() == [(Decimal("3.000000"),)]


@settings(max_examples=80, deadline=None)
@given(price=st.decimals(min_value=0, max_value=10**11, places=6))
def test_any_price_comes_out_as_it_went_in(price, tmp_path_factory):
    file = tmp_path_factory.mktemp("rates") / "rates.csv"
    file.write_text(f"price_per_gpu_h\n{price}\n")

    (batch,) = Rates(file, ReadOptions()).extract()

    assert batch.rows["price_per_gpu_h"].to_list() == [price]
