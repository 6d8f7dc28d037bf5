"""Tools of agents over MCP: what they answer, to whom, and how much of it."""

import asyncio
import json
import os
import shutil
import sys
from importlib.util import find_spec

import pytest
from tests.app.served import GOODPUT, ask
from tests.app.server.conftest import ALL, RED_TEAM, URL, behind_tokens
from tests.queries.conftest import START_MS
from tests.tables import each
from tests.two_teams import COBALTS, END_S, OTHERS, RED, built

from goodput_app.page_links import iso
from goodput_app.server import agents
from goodput_app.server.agents import tools
from goodput_app.server.agents.answers import ANSWER_MAX_CHARS, CELL_MAX_CHARS
from goodput_app.server.agents.route import mcp_route
from goodput_app.sql_access import run_query
from goodput_queries import audit
from goodput_queries import ledger as ledgers

# the package is imported where it is used: it takes a second of each process that collects
pytestmark = pytest.mark.skipif(
    find_spec("mcp") is None, reason="the package of the extra mcp is not installed"
)
WINDOW = {"from": iso(START_MS), "to": iso(START_MS + END_S * 1000)}
QUESTIONS = {  # question -> tool, its arguments, what the first row has
    "what share becomes useful": ("ledger", {}, {"category": "step_unsplit"}),
    "where does the rest go": ("ledger", {"by": "blame,category"}, {"blame": "use"}),
    "which jobs waste most": ("runs", {}, {"run_key": "lab/main"}),
    "when do GPUs dip": ("query_mart", {"mart": "gang_gaps"}, {"coincides": "Teardown"}),
    "what limits it": ("query_mart", {"mart": "run_bounds", "run": "main"}, {"is_near": False}),
    "which rank is late": ("query_mart", {"mart": "stragglers"}, {"rank": 1, "run_id": "main"}),
    "is a GPU throttled": ("query_mart",
                           {"mart": "marts.throttle_episodes", "where": {"gpu_index": 3},
                            "columns": ["reason"]}, {"reason": "sw_power_cap"}),
    "why did it die": ("run", {"run": "hang"}, {"run_key": "lab/hang", "useful_ms": 0}),
    "should the node go": ("node", {"node": "vm"}, {"events": 0}),
    "what does a team pay": ("ledger", {"by": "team,user"},
                             {"team": "research", "user": "trainer"}),
    "what to do first": ("fixes", {}, {"fix": "save_on_signal", "back_low_ms": 0}),
    "what needs a person": ("findings", {"run": "main"}, {"rule": "job_failure"}),
}  # fmt: skip
OF_A_TEAM = {
    "ledger": {"by": "team,category,node"}, "findings": {"severity": "note"}, "fixes": {},
    "runs": {}, "run": {"run": "redtrain"}, "node": {"node": "sharednode"},
    "query_mart": {"mart": "attempts"},
}  # fmt: skip


def site(store):
    """Return an application with the route, behind the check of tokens."""
    return behind_tokens(mcp_route(store, URL))


def over_http(app, token, work):
    """Return what `work` does with a client of an application here, which shows a token."""
    import httpx2  # noqa: PLC0415 -- see `pytestmark`
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 -- likewise

    async def connected():
        given = {"Authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, headers=given) as http:
            return await asked(streamable_http_client(f"{URL}/mcp", http_client=http), work)

    return asyncio.run(connected())


async def asked(server, work):
    """Return what `work` does with a client of a server."""
    from mcp import Client  # noqa: PLC0415 -- see `pytestmark`

    async with Client(server) as client:
        return await work(client)


def call(name, **arguments):
    """Return work: the call of a tool, which gives its JSON, or its sentence where it refuses."""

    async def work(client):
        result = await client.call_tool(name, arguments)
        (part,) = result.content
        return part.text if result.is_error else json.loads(part.text)

    return work


@pytest.fixture(autouse=True)
def _asked_anew(people_sign_in):  # noqa: ARG001 -- tokens are asked for
    """Record each question."""
    run_query._asked.clear()


@pytest.fixture(scope="module")
def worlds(filled, module_store):
    """Give the red team beside two others, which differ in names and amounts."""
    return [module_store(copy_of=built(filled, other)) for other in (COBALTS, OTHERS)]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_with_evidence_range_units_and_page(recorded, question):
    tool, arguments, expected = QUESTIONS[question]
    answer = over_http(site(recorded), ALL, call(tool, **arguments))
    first = answer["tables"][0]

    assert first["rows"][0] | expected == first["rows"][0]
    assert answer["evidence"].startswith("Goodput (% of ")
    assert answer["time_range"]["data_from"] == "2026-11-20T12:29:30Z"
    assert answer["page"].startswith(f"{URL}/")
    assert first["meaning"]
    assert {"unit", "meaning"} <= first["columns"].get("gpu_ms", {"unit": 0, "meaning": 0}).keys()


def test_the_ledger_is_that_of_the_command_and_a_term_is_defined(recorded):
    (table,) = over_http(site(recorded), ALL, call("ledger", by="category"))["tables"]
    (terms,) = over_http(site(recorded), ALL, call("glossary", term="Goodput"))["tables"]

    assert [dict(row) for row in table["rows"]] == ledgers.ledger(recorded).drop("gpu_s").to_dicts()
    assert sum(row["gpu_ms"] for row in table["rows"]) == ledgers.capacity_ms(recorded)
    assert terms["rows"][0]["view"] == "marts.goodput_summary"


@pytest.mark.parametrize("tool", OF_A_TEAM)
def test_a_token_of_a_team_learns_nothing_of_another(worlds, tool):
    given = OF_A_TEAM[tool] | WINDOW
    beside = [over_http(site(store), RED_TEAM, call(tool, **given)) for store in worlds]

    assert rounded(beside[0]) == rounded(beside[1])
    assert "red" in str(beside[0])
    assert COBALTS.word not in str(beside)
    assert OTHERS.word not in str(beside)
    assert beside[0]["is_limited_to_your_teams"]


def rounded(value):
    """Return a value of JSON whose floats have the digits that do not depend on an order."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@each(
    ("run", {"run": "cobalttrain"}, "The ledger knows no run cobalttrain."),
    ("runs", {"team": "cobaltteam"}, "The ledger knows no team cobaltteam."),
    ("query_mart", {"mart": "marts.nodes"}, "there is no mart 'marts.nodes' for you"),
    ("query_mart", {"mart": "raw.job_runs"}, "there is no mart 'raw.job_runs' for you"),
    ("query_mart", {"mart": "runs", "where": {'x" or 1=1': 1}}, "has no column 'x\" or 1=1'"),
    ("runs", {"teem": "redteam"}, "runs: Object contains unknown field `teem`."),
    ("runs", {"limit": 201}, "Expected `int` <= 200"),
    ("runs", {"from": "yesterday"}, "'yesterday' is not a valid time"),
    ("ledger", {"by": "colour"}, "the ledger has no key 'colour'"),
    ("drop", {}, "there is no tool 'drop'"),
)  # fmt: skip
def test_what_is_not_allowed_or_known_is_refused(worlds, tool, arguments, sentence):
    assert sentence in over_http(site(worlds[0]), RED_TEAM, call(tool, **arguments))


def test_two_tokens_at_a_time_get_their_own_rows(worlds):
    async def teams_of(client):
        answer = await call("ledger", by="team", **WINDOW)(client)
        return {row["team"] for row in answer["tables"][0]["rows"]} - {None}

    app = site(worlds[0])
    assert over_http(app, RED_TEAM, teams_of) == {RED}
    assert over_http(app, ALL, teams_of) == {RED, COBALTS.name}
    asked_by = audit.entries(worlds[0])
    assert {"token agent", "token red agent"} <= set(asked_by["who"])
    assert asked_by["subject"][0].startswith('ledger {"by": "team"')


def test_rows_and_characters_are_bounded_and_the_cut_is_said(worlds):
    answer = over_http(site(worlds[0]), ALL, call("query_mart", mart="train_steps", limit=200))
    (table,) = answer["tables"]

    assert len(json.dumps(answer)) <= ANSWER_MAX_CHARS
    assert 0 < table["row_count"] == len(table["rows"]) < 200
    assert table["is_truncated"]
    few = over_http(site(worlds[0]), ALL, call("query_mart", mart="train_steps", limit=2))
    assert (few["tables"][0]["row_count"], few["tables"][0]["is_truncated"]) == (2, True)


def test_hostile_names_are_cut_and_tools_say_that_they_are_data(teams):
    async def descriptions(client):
        return [tool.description for tool in (await client.list_tools()).tools]

    answer = over_http(site(teams), ALL, call("query_mart", mart="attempts", limit=200))
    said = over_http(site(teams), ALL, descriptions)

    texts = [v for row in answer["tables"][0]["rows"] for v in row.values() if isinstance(v, str)]
    assert max(map(len, texts)) <= CELL_MAX_CHARS
    assert all(text.isprintable() for text in texts)
    assert all(tools.AS_DATA in one for one in said)
    assert len(said) == len(tools.TOOLS) == 8


def test_resources_list_the_marts_of_the_asker_and_columns_with_units(worlds):
    async def read(client):
        marts = await client.read_resource("goodput://marts")
        runs = await client.read_resource("goodput://marts/marts.runs")
        return [json.loads(one.contents[0].text) for one in (marts, runs)]

    marts, runs = over_http(site(worlds[0]), RED_TEAM, read)

    assert "marts.runs" in marts
    assert "marts.nodes" not in marts
    held = next(column for column in runs["columns"] if column["name"] == "held_ms")
    assert (held["unit"], held["meaning"]) == ("milliseconds", "GPU time allocated in the window")


def test_without_the_package_the_answer_is_a_sentence(recorded, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "goodput_app.server.agents.protocol", raising=False)
    monkeypatch.delattr(agents, "protocol", raising=False)
    headers = {"Authorization": f"Bearer {ALL}"}
    answer = ask(site(recorded), "/mcp", method="POST", headers=headers, json={})

    assert answer.status_code == 501
    assert "an MCP server needs packages that are not installed" in answer.json()["message"]


def test_the_command_answers_on_standard_output(recorded_demo, here):
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415 -- see `pytestmark`

    shutil.copyfile(recorded_demo, here / "fleet.duckdb")
    of = {"args": [*GOODPUT[1:], "mcp", "--db", "fleet.duckdb"], "env": dict(os.environ)}
    command = StdioServerParameters(command=GOODPUT[0], cwd=here, **of)

    answer = asyncio.run(asked(command, call("ledger", by="node")))

    assert answer["page"] == "/"
    assert answer["tables"][0]["rows"][0]["node"] == "vm"
