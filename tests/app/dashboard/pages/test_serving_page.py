"""The page of serving engines, in-process: on a small fleet, and where nothing is configured."""

import pytest
from tests.app.dashboard.pages.test_pages import assert_can_be_downloaded, unexplained
from tests.app.opened_page import page_of, table, tile
from tests.queries.serving.load import Engine, fleet

from goodput_app.dashboard.data import serving as read
from goodput_app.dashboard.data.marts import reader

TIMES = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T10:00:00Z"}
HOSTILE = "<b>moe</b> :red[x]"
page = page_of("store", "model_serving", **TIMES)


@pytest.fixture(scope="module")
def store(made):
    """Give the fleet of the tests of marts, with a tenant of a hostile name."""
    fleet(made)
    engine = Engine(made)
    engine.log({"arrival": 60.0 + n, "ttft": 2.0, "e2e": 4.0, "tenant": HOSTILE} for n in range(9))
    rare = Engine(made, "pod-1", "rare")
    rare.log(
        {"arrival": 10.0 * n, "ttft": 2.5 if 180 <= n < 240 else 0.5, "e2e": 10.0}
        for n in range(360)
    )
    made.xid("n1", 74, 1795, "test", gpu_uuid="c/n1#1")
    made.build()
    return made.store


def test_the_run_of_an_engine_has_no_part_of_training_runs(store, visit):
    run = store.read("select min(run_key) from marts.serving_gpus").item()
    shown = [part.value for part in visit(store, "one_run", run=run, **TIMES).subheader]
    assert {"Ledger", "GPUs over time"} <= set(shown)
    assert not {"Step times", "Stragglers", "Why the attempt failed"} & set(shown)


def test_it_says_how_fast_engines_are_what_tokens_cost_and_why_latencies_spike(page):
    shown = {name: tile(page, name) for name in ("Output tokens/s", "Within objective")}
    assert shown == {"Output tokens/s": "232", "Within objective": "not known"}
    assert tile(page, "Idle serving cost") == "$3.60"
    assert any("per GPU, 4 GPUs" in caption.value for caption in page.caption)
    tables = [t.value for t in page.dataframe if "p50_bounds" in t.value.columns]
    assert {"exact", "0.75 to 1.0"} <= {text for found in tables for text in found["p50_bounds"]}
    (row,) = table(page, "cause_label").to_dicts()
    assert (row["endpoint"], row["p95_s"], row["usual_p95_s"]) == ("pod-1", 2.5, 0.5)
    assert (row["cause_label"], row["evidence"]) == ("GPU event", "Xid 74 of GPU 1 at 08:29:55")
    assert_can_be_downloaded(page)
    assert unexplained(page) - {"GPUs"} == set()


def test_a_tenant_leads_to_its_slowest_engine_and_the_engine_to_its_gpu(store, visit):
    """The row of the tenant sets `serving_engine`; the page then has the links."""
    asked = {"serving_engine": "c|pod-0||llama", "served_model": "llama", "served_by": "engine"}
    app = visit(store, "model_serving", **asked, **TIMES)

    shown = {m for t in app.dataframe if "model" in t.value for m in t.value["model"]}
    assert shown == {"llama"}, "of one model alone"
    links = [link.proto.label for link in app.get("page_link")]
    assert "Open GPU 0, n1" in links
    assert "Open node n1" in links


def test_a_page_says_of_how_many_rows_it_has_the_first(store, visit, monkeypatch):
    monkeypatch.setattr(read, "ROWS_SHOWN", 2)
    of_model = {"columns": read.COUNTED, "where": read.OF_MODEL, "limit": 2}
    monkeypatch.setattr(read, "engines", reader("serving_engines", "endpoint", **of_model))
    app = visit(store, "model_serving", served_by="role", **TIMES)

    texts = [caption.value for caption in app.caption]
    assert "The first 2 of 5 engines; choose a served model." in texts
    assert any(text.startswith("The first 2 of ") and "latencies" in text for text in texts)
