"""`/api/v1` and the Query page: whose rows they give, in which formats, and what is refused."""

import asyncio
import io
import itertools
import json
from types import SimpleNamespace

import httpx
import polars as pl
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.app.served import ask
from tests.app.server.conftest import ALL, NLP, OLD, behind_tokens
from tests.queries.conftest import START_MS, at
from tests.tables import each

from goodput_app.access import tokens
from goodput_app.process.usage import BusyError
from goodput_app.server.api import answers, request_params
from goodput_app.server.api.document import openapi
from goodput_app.server.api.routes import api_routes
from goodput_app.sql_access import run_query
from goodput_app.sql_access.formats import MEDIA_TYPES, content
from goodput_app.sql_access.slots import Slots
from goodput_queries import audit, saved_queries
from goodput_queries.errors import QueryError
from goodput_queries.sandbox import process
from goodput_queries.sandbox.limits import Limits
from goodput_queries.sandbox.select import Answer, select, whole
from goodput_queries.sandbox.views import offered
from goodput_queries.scope import Scope

TEAMS = "select team, count(*)::int as runs from marts.runs where team is not null group by team"


class Client:
    """A program that asks, with a token or the headers of the proxy."""

    def __init__(self, store):
        self.store = store
        self.app = behind_tokens(*api_routes(store))

    def ask(self, path, token=ALL, method="GET", **given):
        """Return the answer to a request below /api/v1."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= given.pop("headers", {})
        peer = ("10.0.0.7", 1)
        return ask(self.app, f"/api/v1{path}", method=method, peer=peer, headers=headers, **given)

    def sql(self, sql, token=ALL, **given):
        """Return the answer to a select."""
        return self.ask("/query", token, "POST", json={"sql": sql, **given})


@pytest.fixture
def client(scraped_store, people_sign_in):  # noqa: ARG001 -- with tokens or through a proxy
    run_query._asked.clear()
    return Client(scraped_store)


def test_the_document_is_valid_and_has_every_route(client):
    answer = client.ask("/openapi.json", token=None)

    assert answer.json() == json.loads(json.dumps(openapi()))
    OpenAPIV31SpecValidator(answer.json()).validate()
    documented = {(path, m.upper()) for path, item in answer.json()["paths"].items() for m in item}
    routes = api_routes(client.store)
    routed = {(route.path, method) for route in routes for method in route.methods or ()}
    assert documented == {(path, method) for path, method in routed if method != "HEAD"}
    query = openapi()["components"]["schemas"]["Query"]["properties"]
    assert query["format"]["enum"] == list(MEDIA_TYPES)


def test_a_token_sees_the_rows_of_its_teams_and_that_others_are_withheld(client):
    everything, own = client.sql(TEAMS).json(), client.sql(TEAMS, NLP).json()

    assert sorted(row["team"] for row in everything["rows"]) == ["nlp", "speech", "vision"]
    assert everything["rows_withheld"] is False
    assert own["rows"] == [{"team": "nlp", "runs": 1}]
    assert own["rows_withheld"] is True
    assert own.keys() == openapi()["components"]["schemas"]["Rows"]["properties"].keys()


@each(0, 6 * 3_600, 16 * 3_600 - 1)
def test_a_program_of_a_team_reads_the_same_for_every_second_of_a_day(client, second):
    """Before another team works, as it begins, as the day ends: test_times_of_other_teams."""
    begin, end = (f"{at(one):%Y-%m-%dT%H:%M:%SZ}" for one in (second, second + 1))
    sql = "select runs, withheld from marts.runs_withheld"
    answer = client.sql(sql, NLP, **{"from": begin, "to": end}).json()

    assert answer["rows"] == [{"runs": 2, "withheld": 1}]


@each(
    ("select * from marts.nodes", 403), ("select * from raw.job_runs", 400),
    ("select * from query('select * from marts.nodes')", 400), ("select 1" + " " * 20_000, 400),
)  # fmt: skip
def test_what_a_token_may_not_read_is_refused(client, sql, status):
    answer = client.sql(sql, NLP)
    assert answer.status_code == status
    assert answer.json().keys() == {"error", "message"}
    assert "vision" not in answer.text


def test_a_limit_is_kept_and_said_in_every_format(client):
    path, asked = "/views/marts.ledger_scoped/rows", {"limit": "5", "format": "parquet"}
    answer = client.ask(path, params=asked)
    rows = pl.read_parquet(io.BytesIO(answer.content))

    assert rows.height == 5
    assert {"team", "hour_ms", "gpu_ms"} <= set(rows.columns)
    assert answer.headers["X-Goodput-Truncated"] == "true"
    assert answer.headers["X-Goodput-Row-Limit"] == "5"
    same = Answer(rows, is_cut=True, rows_max=5, views=("marts.ledger_scoped",), is_limited=False)
    assert pl.read_ipc_stream(io.BytesIO(content(same, "arrow"))).equals(rows)
    assert pl.read_csv(content(same, "csv"))["gpu_ms"].equals(rows["gpu_ms"])
    in_json = json.loads(content(same, "json"))
    assert [row["gpu_ms"] for row in in_json["rows"]] == rows["gpu_ms"].to_list()
    assert (in_json["is_truncated"], in_json["row_limit"]) == (True, 5)


@each(
    ({"form": "csv"}, "there is no parameter 'form'"), ({"format": "xml"}, "'format' is 'xml'"),
    ({"limit": "0"}, "'limit' is 0"), ({"limit": "all"}, "'limit' is 'all'"),
    ({"from": "2027-01-15T08:00"}, "has no offset"),
    ({"from": "now", "to": "now-1h"}, "ends before it begins"),
    ({"team": ""}, "'team' is expected as a text"),
)  # fmt: skip
def test_a_wrong_parameter_is_named(client, parameters, said):
    answer = client.ask("/views/marts.runs/rows", params=parameters)
    assert answer.status_code == 400
    assert said in answer.json()["message"]


def test_without_a_valid_token_nothing_is_given(client):
    assert client.ask("/views", token=f"{tokens.PREFIX}wrong").status_code == 401
    assert client.ask("/views", token=OLD).status_code == 401
    for of_nobody in (None, "a proxy's own"):
        assert client.ask("/views", token=of_nobody).status_code == 403  # of this sign-in
    assert client.ask("/views", token=None, headers={"X-Forwarded-User": "ada"}).status_code == 200


def test_the_catalogue_says_what_columns_mean(client):
    everything = {view["name"]: view for view in client.ask("/views").json()["views"]}
    own = {view["name"] for view in client.ask("/views", NLP).json()["views"]}

    held = next(c for c in everything["marts.runs"]["columns"] if c["name"] == "held_ms")
    assert held == {
        "name": "held_ms", "type": "BIGINT", "meaning": "GPU time allocated in the window",
        "unit": "milliseconds",
    }  # fmt: skip
    meanings = {c["name"]: c["meaning"] for c in everything["marts.run_peers"]["columns"]}
    assert meanings["peers"] == "number of other runs that report the same"
    assert meanings["peer_speed"] == "their median"
    assert {name.split(".")[0] for name in everything} == {"marts", "reference"}
    assert "marts.nodes" in everything.keys() - own
    assert client.ask("/views/marts.nodes/rows", NLP).status_code == 404


def test_shipped_queries_are_for_teams(client):
    queries = client.ask("/queries", NLP).json()["queries"]
    for one in queries:
        rows = client.store.read(f"from ({one['sql']}) limit 0", scope=Scope(teams=("nlp",)))
        assert rows.width > 4
        assert one["meaning"]

    answer = client.ask("/queries/gpu_time_by_team_and_day/rows", NLP).json()
    assert {row["team"] for row in answer["rows"]} == {"nlp"}
    assert client.ask("/queries/none/rows").status_code == 404


def test_own_queries_are_seen_by_their_author_until_they_are_shared(store, monkeypatch):
    own = saved_queries.save(store, "Mine", "A one.", "select 1", saved_by="ada", is_shared=False)
    keys = lambda who: [q.key for q in saved_queries.visible(store, who) if q.saved_by]  # noqa: E731

    assert (keys("ada"), keys("bob"), keys(None)) == ([own.key], [], [own.key])
    again = saved_queries.save(store, "Mine", "Two.", "select 2", saved_by="ada", is_shared=True)
    assert (again.key, keys("bob")) == (own.key, [own.key])
    with pytest.raises(Exception, match="no saved query of yours"):
        saved_queries.delete(store, own.key, asked_by="bob")
    saved_queries.delete(store, own.key, asked_by="ada")
    assert keys("ada") == []
    monkeypatch.setattr(saved_queries, "OWN_MAX", 0)
    with pytest.raises(Exception, match="delete one first"):
        saved_queries.save(store, "Other", "x", "select 1", saved_by="ada", is_shared=False)


def test_who_asked_what_is_recorded_once_an_hour(client, monkeypatch):
    answer = Answer(pl.DataFrame({"n": [1]}), is_cut=False, rows_max=1, views=(), is_limited=False)
    monkeypatch.setattr(run_query.sandbox, "select", lambda *_, **__: answer)
    before, commits = audit.entries(client.store).height, client.store.commits
    for _ in range(2):
        client.sql("select 4711 as n", NLP)
    client.sql("select 4711 as m" + " " * 400)

    entries = audit.entries(client.store)
    assert entries.height == before + 2
    assert client.store.commits == commits  # what pages keep stays valid
    assert entries["who"].to_list()[:2] == ["token agent", "token nlp report"]
    assert entries["subject"][1] == "select 4711 as n"
    assert "(416 characters, SHA-256 " in entries["subject"][0]


@pytest.fixture
def asked(monkeypatch):
    """Give the questions that were answered again."""
    found, ask_one = [], run_query.ask

    def counted(store, what, *given):
        found.append(run_query.question(what))
        return ask_one(store, what, *given)

    monkeypatch.setattr(run_query, "ask", counted)
    return found


def test_the_same_question_is_answered_once_until_a_commit(client, asked, monkeypatch):
    monkeypatch.setattr(answers, "LASTS", 0)
    first = client.ask("/views/marts.runs/rows")
    assert client.ask("/views/marts.runs/rows").content == first.content
    assert len(asked) == 1
    client.ask("/views/marts.runs/rows", params={"limit": "1"})
    assert client.ask("/views/marts.runs/rows", NLP).content != first.content
    assert len(asked) == 3

    monkeypatch.setattr(client.store, "commits", client.store.commits + 2)
    assert client.ask("/views/marts.runs/rows").content == first.content
    assert len(asked) == 4
    client.ask("/views/marts.runs/rows", headers={"Cache-Control": "no-cache"})
    assert len(asked) == 5
    for _ in range(2):  # whatever the time is
        client.ask("/views/marts.runs/rows", params={"from": "now-90d"})
        monkeypatch.setattr(request_params, "NOW_STEP_S", 7)
    assert len(asked) == 6
    for _ in range(2):
        assert client.sql("select 1 / 'a'").status_code == 400
    assert len(asked) == 8, "a failure is answered again"


def test_a_question_that_many_ask_at_once_is_answered_once_and_recorded_for_each(client, asked):
    async def at_once():
        transport = httpx.ASGITransport(client.app, client=("10.0.0.7", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://goodput") as both:
            ask_as = [{"Authorization": f"Bearer {ALL}"}, {"X-Forwarded-User": "ada"}]
            path = "/api/v1/queries/gpu_time_by_team_and_day/rows"
            return await asyncio.gather(*(both.get(path, headers=one) for one in ask_as * 10))

    answers = asyncio.run(at_once())

    assert {(one.status_code, one.content) for one in answers} == {(200, answers[0].content)}
    assert len(asked) == 1
    assert set(audit.entries(client.store, 2)["who"]) == {"token agent", "ada"}


def test_a_whole_view_has_the_rows_and_types_of_a_select_of_it(scraped_store):
    limits = Limits(rows_max=2)
    for name in ("marts.clusters", "marts.gpu_metrics", "reference.finding_rules"):
        of_view = whole(scraped_store, offered(scraped_store)[name], limits=limits)
        of_select = select(scraped_store, f"select * from {name}", limits=limits)
        assert of_view.rows.sort(pl.first()).equals(of_select.rows.sort(pl.first()))
        assert of_view.rows.schema == of_select.rows.schema
        assert (of_view.is_cut, of_view.views) == (of_select.is_cut, of_select.views)


def test_a_view_with_too_many_rows_or_that_takes_too_long_is_refused(scraped_store, monkeypatch):
    hours = Scope(START_MS, START_MS + 3_600_000)
    narrow = Limits(view_rows_max=20)

    assert select(scraped_store, "from marts.ledger_scoped", scope=hours, limits=narrow).rows.height
    with pytest.raises(Exception, match="ledger_scoped has more than 20 rows"):
        select(scraped_store, "from marts.ledger_scoped", limits=narrow)

    now = itertools.count(0, 3)  # seconds, from one look at the clock to the next
    offered(scraped_store)
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: next(now)))
    with pytest.raises(QueryError, match="took longer than 2 s and was stopped"):
        select(scraped_store, "from marts.runs", limits=Limits(timeout_s=2))


def test_one_caller_does_not_take_every_place():
    slots = Slots(2, 1, wait_s=0.01)
    with slots.taken("ada"):
        with pytest.raises(BusyError, match="1 of one person"), slots.taken("ada"):
            pass
        with slots.taken("bob"), pytest.raises(BusyError, match="2 run at"), slots.taken("eve"):
            pass
    with slots.taken("ada"):
        pass


WINDOW = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-16T14:00:00Z"}


@pytest.fixture
def page(visit, scraped_store):
    return visit(scraped_store, "sql_query", **WINDOW)


def ask_on(page, sql):
    page.text_area(key="query_sql").set_value(sql)
    return page.button(key="query_run").click().run()


def test_rows_of_a_query_are_shown_and_recorded_or_it_says_why_not(page, scraped_store):
    assert "Run a query to see its rows." in [c.value for c in page.caption]

    sql = "select team, count(*) as n from marts.runs group by team order by team"
    ask_on(page, sql)

    shown = page.dataframe[0].value
    own = scraped_store.read(sql)
    assert [list(row) for row in shown.itertuples(index=False)] == [list(r) for r in own.rows()]
    assert audit.entries(scraped_store, 1)["action"].item() == "query"

    ask_on(page, "select * from read_text('/etc/passwd')")

    assert [error.value for error in page.error] == ["The query was not answered."]
    assert "LocalFileSystem has been disabled" in page.code[0].value


def test_a_query_is_saved_and_chosen_again_and_columns_of_a_view_explained(page, scraped_store):
    page.text_area(key="query_sql").set_value("select 4711 as n")
    page.text_input(key="query_name").set_value("Mine")
    page.text_input(key="query_meaning").set_value("One number.")
    next(b for b in page.button if b.label == "Save").click().run()

    (own,) = [one for one in saved_queries.visible(scraped_store, None) if one.saved_by]
    assert (own.name, own.meaning, own.is_shared) == ("Mine", "One number.", False)
    page.selectbox(key="query_saved").set_value("most_wasted_runs").run()
    assert "marts.runs" in page.text_area(key="query_sql").value
    page.selectbox(key="query_saved").set_value(own.key).run()
    next(b for b in page.button if b.label == "Delete the chosen query").click().run()
    assert [one for one in saved_queries.visible(scraped_store, None) if one.saved_by] == []
    assert not page.exception
    page.selectbox(key="query_view").set_value("marts.runs").run()
    columns = page.dataframe[0].value
    held = columns[columns["name"] == "held_ms"].iloc[0]
    assert (held["type"], held["unit"]) == ("BIGINT", "milliseconds")
    assert held["meaning"] == "GPU time allocated in the window"
