"""One account a person, or token, of what pages, SQL, `/api/v1` and uploads take together."""

import re
from types import SimpleNamespace

import pytest
from starlette.responses import PlainTextResponse
from tests.app.served import ask
from tests.app.server.conftest import ALL, NLP, behind_tokens
from tests.tables import each

from goodput_app.access import current
from goodput_app.access.identity import Identity, Role
from goodput_app.access.settings import PersonLimits
from goodput_app.dashboard.components import states
from goodput_app.process import usage
from goodput_app.server.api.routes import api_routes
from goodput_app.server.streamlit_routes import StreamlitRoutes

LIMITS = PersonLimits(seconds_per_minute=10, rows_per_minute=1_000, memory_mib=64)
SPENT = "took 45 s of processor time within a minute, which is what [access.per_person] seconds_"
ADA = Identity("ada", frozenset({Role.OPERATOR}))
RUNS = "select count(*) as n from marts.runs"


@pytest.fixture
def clock(monkeypatch):
    """Give a clock of accounts that stands still."""
    now = SimpleNamespace(at=100.0, took=0.0)
    now.monotonic, now.thread_time = lambda: now.at, lambda: now.took
    monkeypatch.setattr(usage, "time", now)
    return now


def spend(name, **taken):
    """Let somebody have taken as much as they may, or this; return their account."""
    with current.request_of(Identity(name), None):
        (account := usage.account()).debit(**taken or {"processor_s": 45})
    return account


@each(
    ([{"processor_s": 4}] * 3, "10 s of processor time", 41),
    ([{"processor_s": 9}, {"rows": 1_000}], "1,000 rows", 61),
)
def test_who_took_what_they_may_waits_until_the_minute_has_less(clock, taken, said, wait_s):
    account = usage.Account(LIMITS)
    for one in taken:
        account.refuse_spent()
        clock.at += 10
        account.debit(**one)
    with pytest.raises(usage.BusyError, match=said) as got:
        account.refuse_spent()

    assert got.value.retry_after_s == wait_s
    clock.at += wait_s
    account.refuse_spent()


def test_time_within_time_counts_once_and_memory_while_it_is_held(clock):
    account, of_all = usage.Account(LIMITS), usage.account()  # of a server without a sign-in
    with account.evaluating(), account.evaluating(), of_all.holding(1e6):
        clock.took = 9.0
    of_all.debit(processor_s=1e6, rows=10**12)
    of_all.refuse_spent()
    account.refuse_spent()
    with account.holding(40), pytest.raises(usage.BusyError, match="64 MiB"), account.holding(25):
        pass
    with account.holding(64):
        clock.at += 62
        assert not account.is_idle
    assert account.is_idle


@pytest.mark.usefixtures("people_sign_in")
def test_the_api_refuses_one_token_and_gives_kept_answers(scraped_store):
    app = behind_tokens(*api_routes(scraped_store))

    def sql(text, token=ALL):
        asked = {"json": {"sql": text}, "headers": {"Authorization": f"Bearer {token}"}}
        return ask(app, "/api/v1/query", method="POST", peer=("10.0.0.7", 1), **asked)

    first = sql(RUNS)
    (_, (took_s, rows)), *_ = spend("token agent", rows=0)._seconds
    spend("token agent")
    refused = sql(f"{RUNS} where true")

    assert (took_s > 0.05, rows) == (True, 1)  # that of the worker, too
    assert (first.status_code, refused.status_code) == (200, 429)
    assert SPENT in refused.json()["message"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 61
    assert sql(RUNS).json() == first.json()
    assert sql(f"{RUNS} where true", NLP).status_code == 200


@pytest.mark.usefixtures("people_sign_in")
@each(({}, 429, SPENT), ({"rows": 1}, 200, "passed on"))
def test_an_upload_is_refused_by_the_same_account(taken, status, said):
    spend("ada", **taken)

    async def app(*request):
        with current.request_of(ADA, None):
            await StreamlitRoutes(PlainTextResponse("passed on"))(*request)

    answer = ask(app, "/_stcore/upload_file/s/f", method="PUT", content=b"123")

    assert (answer.status_code, "retry-after" in answer.headers) == (status, status == 429)
    assert said in answer.text


def test_a_page_shows_its_last_answers_and_says_why(visit, as_identity, evidence, monkeypatch):
    waits = []
    monkeypatch.setattr(states, "time", SimpleNamespace(sleep=waits.append))

    def shown(number):
        """Return which runs a page has after one more has ended, and whether it warns."""
        second = 600 * number
        evidence.job_on_a_node(f"run{number}", second, second + 500, 1, watched=second + 550)
        evidence.store.build()
        page = visit(evidence.store, "all_runs", is_sound=False)
        runs = set(re.findall(r"run\d", str(page.dataframe[0].value.to_dict())))
        return len(runs), [SPENT in one.value.replace("\\", "") for one in page.warning]

    as_identity(ADA)
    first, _ = shown(1), spend("ada")
    spent, _ = shown(2), usage._accounts.clear()

    assert (first, spent, shown(3)) == ((1, []), (1, [True]), (3, []))
    assert waits == [states.LATER_S]
