"""The Data page on statements that went out, or did not."""

from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest
from tests.app.conftest import PATIENCE_S

import goodput_app
from goodput_app.dashboard.state import use_store
from goodput_app.settings import settings
from goodput_billing.delivery.deliver import send_statement
from goodput_queries.evidence.batch import Batch

MAIN = Path(goodput_app.__file__).with_name("dashboard") / "main.py"


@pytest.fixture
def page(store, tmp_path, monkeypatch):
    """Give the Data page of a database with one node, statements in `out`."""
    monkeypatch.chdir(tmp_path)
    Path("goodput.toml").write_text('[report]\nfolder = "out"\n')
    settings.cache_clear()
    rows = pl.DataFrame({"source": ["slurm"], "cluster": ["lab"], "node": ["n1"]})
    store.load(Batch("nodes", rows, "slurm", "sinfo.txt", "1"))
    use_store(store)

    def shown():
        app = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S).run()
        return app.switch_page("pages/data_health.py").run()

    return shown


def test_it_shows_what_went_out_and_what_failed_first(page, closed, plan, post):
    post.answers += ["554 5.3.0 <b>full</b>"]
    send_statement(closed, plan)

    app = page()

    assert not app.exception
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

    app = page()

    assert not app.exception
    (error,) = app.error
    assert "line 1 is not an entry of the index" in error.value
