"""Prices that a site writes."""

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.site.rates import Rates


def read(folder, text):
    file = folder / "rates.csv"
    file.write_text(text)
    (batch,) = Rates(file, ReadOptions()).extract()
    return batch


def test_a_new_price_replaces_the_old_one_of_the_same_hour(tmp_path, store):
    file = tmp_path / "rates.csv"
    for price in ("2.00", "3.00"):
        file.write_text(f"price_per_gpu_h\n{price}\n")
        ingest(store, "rates", [file], ReadOptions())

    assert store.read("select price_per_gpu_h from raw.rates").rows() == [(Decimal("3.000000"),)]


@settings(max_examples=80, deadline=None)
@given(price=st.decimals(min_value=0, max_value=10**11, places=6))
def test_any_price_comes_out_as_it_went_in(price, tmp_path_factory):
    batch = read(tmp_path_factory.mktemp("rates"), f"price_per_gpu_h\n{price}\n")

    assert batch.rows["price_per_gpu_h"].to_list() == [price]
