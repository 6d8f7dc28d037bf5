"""The search finds runs, nodes, GPUs and teams by any of their names, and leads to their page."""

from urllib.parse import quote

import pytest

from goodput_app.dashboard import time_zone
from goodput_app.dashboard.components import search
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import search as found_by
from goodput_app.process.store import use_store


@pytest.fixture
def find(capture):
    """Give the kind and label of what a text finds, in order."""

    def found(text):
        use_store(capture)
        return found_by.find(text).select("kind", "label").rows()

    return found


@pytest.fixture
def run(capture):
    """Give a run of the session with a name of its job that is not its own."""
    sql = "from marts.search_targets where kind = 'run' and detail <> '' order by start_at limit 1"
    return capture.read(sql).row(0, named=True)


def test_a_run_is_found_by_its_name_and_by_its_jobs(find, run):
    expected = ("run", run["label"])

    assert find(run["label"])[0] == expected
    assert all(expected in find(name) for name in run["detail"].split(" / "))


def test_a_node_and_a_gpu_are_found_by_a_part_of_their_names_in_any_case(find, capture):
    node, gpu = capture.read("select node, gpu_uuid from marts.gpus order by 2 limit 1").row(0)

    assert ("node", node) in find(node[1:].upper())
    assert ("gpu", gpu) in find(gpu.lower())


def test_all_words_must_occur(find, run):
    name = run["detail"].split(" / ")[0]

    assert ("run", run["label"]) in find(f"{name} {run['label']}")
    assert find(f"{name} no-such-word") == []


@pytest.mark.parametrize("text", ["", "  ", "%", "_", "' or 1=1 --", "<b>"])
def test_what_is_no_name_finds_nothing(find, text):
    assert [label for _, label in find(text) if text.strip() not in label or not text.strip()] == []


def test_a_run_opens_in_its_own_time(run):
    page, params = search.target(run)

    assert page == name_links.RUN_PAGE
    assert params["run"] == run["value"]
    assert params["from"] == f"{run['start_at'].isoformat(timespec='milliseconds')}Z"


def test_a_run_outside_of_the_time_range_has_a_link_to_its_own_time(capture, visit, run):
    window = {"from": "2026-11-20T12:35:00Z", "to": "2026-11-20T12:35:01Z"}

    app = visit(capture, "one_run", run=run["value"], **window)

    links = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    (own,) = (
        query for label, query in links.items() if label.startswith("Show the run in its own time")
    )
    assert f"from={quote(time_zone.iso(run['start_at']), safe='')}" in own
