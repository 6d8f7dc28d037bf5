"""The Data page on statements that went out, or did not."""

import polars as pl
import pytest

from goodput_billing.delivery.deliver import send_statement
from goodput_queries.evidence.batch import Batch


@pytest.fixture
def page(store, configured, plan, visit):
    """Give what opens the Data page of a database with one node, statements in `out`."""
    configured(f'[report]\nfolder = "{plan.folder}"\n')
    rows = pl.DataFrame({"source": ["slurm"], "cluster": ["lab"], "node": ["n1"]})
    store.load(Batch("nodes", rows, "slurm", "sinfo.txt", "1"))
    return lambda: visit(store, "data_health", is_sound=False)


def test_it_shows_what_went_out_and_what_failed_first(page, closed, plan, post):
    post.answers += ["554 5.3.0 <b>full</b>"]
    send_statement(closed, plan)

    app = page()

    assert [one.value for one in app.error] == ["1 of 3 deliveries failed; they are tried again."]
    table = next(one.value for one in app.dataframe if "channel" in one.value.columns)
    assert table["channel"].tolist() == ["mail", "files", "webhook"]
    assert table["error"][0].endswith("refused the mail (554 5.3.0 <b>full</b>).")
    assert table["error"].isna().tolist() == [False, True, True]


def test_without_statements_it_names_the_way_to_them(page):
    app = page()

    assert not app.error
    assert any("`[report]` in goodput.toml" in one.value for one in app.caption)


def test_a_damaged_index_is_an_error_in_its_place(page, plan):
    plan.folder.mkdir()
    (plan.folder / "statements.jsonl").write_text("{")

    (error,) = page().error

    assert "line 1 is not an entry of the index" in error.value
