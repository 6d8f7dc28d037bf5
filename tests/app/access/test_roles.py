"""Roles: what somebody may not do is not offered, and is refused by the code that acts."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.app.command_line import run
from tests.tables import each

from goodput_app.access import current, finding_state
from goodput_app.access.current import NotAllowedError
from goodput_app.access.identity import Identity, Role
from goodput_app.dashboard import price_edit, statement_actions
from goodput_app.dashboard.data import statements
from goodput_app.process.store import use_store
from goodput_billing.adjustments.record import Target
from goodput_billing.statement.days import day_of
from goodput_queries import audit
from goodput_queries.evidence.batch import Batch

SINCE = datetime(2026, 11, 20)  # noqa: DTZ001 -- naive UTC
FINDING = {
    "finding_key": "k", "rule": "idle_allocation", "since_at": SINCE, "until_at": None,
    "title": "Idle GPUs", "subject": "team nlp",
}  # fmt: skip
WHEN = (SINCE - timedelta(days=1)).date()


@pytest.fixture
def signing_in(configured, people_sign_in):  # noqa: ARG001 -- they do
    """Let people sign in, and finance edit prices."""
    configured("[ui]\nedit_prices = true\n")


def signed_in(role):
    return current.request_of(Identity("ada", frozenset({role})), "192.0.2.9")


def edit_prices(store):
    assert price_edit.read_in(store, "rates", "gpu_model,price_per_gpu_h\nA100,3\n") == 1


def set_state(store):
    finding_state.record(store, FINDING, "acknowledge", "ada", None)


def download(store):
    use_store(store)
    how = statements.chosen(None)
    assert statements.statement_file([day_of(WHEN, how.settings)], "csv", how)


def write_note(store):
    assert statement_actions.speak(store, "note", Target(WHEN, "nlp"), "seen")


ACTIONS = {
    write_note: ({Role.OPERATOR, Role.FINANCE, Role.ADMIN},
                 ("write a note or dispute", "note: 2026-11-19, account nlp")),
    edit_prices: ({Role.FINANCE, Role.ADMIN}, ("edit prices", "rates")),
    set_state: ({Role.OPERATOR, Role.ADMIN},
                ("set the state of a finding", "acknowledge: Idle GPUs (team nlp)")),
    download: ({Role.FINANCE, Role.ADMIN},
               ("download a statement", "statement of 2026-11-19 (csv)")),
}  # fmt: skip


@pytest.mark.usefixtures("signing_in")
@pytest.mark.parametrize("act", ACTIONS)
def test_an_action_is_refused_or_done_and_recorded(priced, act):
    roles, entry = ACTIONS[act]
    for role in Role:
        with signed_in(role), nullcontext() if role in roles else pytest.raises(NotAllowedError):
            act(priced)

    log = audit.entries(priced).filter(action=entry[0])
    assert log.select("who", "action", "subject", "from_address").rows() == [
        ("ada", *entry, "192.0.2.9")
    ] * len(roles)
    if act is edit_prices:
        origins = priced.read("select origin from state.ingested where origin like 'Cost page%'")
        assert all(origin.startswith("Cost page, ada, ") for origin in origins["origin"])


@pytest.mark.usefixtures("signing_in")
def test_nobody_is_not_the_local_user_and_another_thread_is_somebody_only_where_made_to(priced):
    with pytest.raises(NotAllowedError, match="Nobody is signed in here"):
        edit_prices(priced)

    with ThreadPoolExecutor(1) as pool:
        with signed_in(Role.FINANCE):
            bare, made_to = current.current_identity, current.carried(current.current_identity)
            assert current.carried(current.current_address)() == "192.0.2.9"
            with pytest.raises(NotAllowedError, match="Nobody"):
                pool.submit(bare).result()
        assert pool.submit(made_to).result().name == "ada"


def test_prices_that_the_settings_do_not_let_anybody_edit_are_refused(priced):
    with pytest.raises(NotAllowedError, match="is false"):
        edit_prices(priced)


def test_the_command_lists_and_checks_the_log_and_old_entries_are_dropped(store):
    old = datetime.now() - timedelta(days=audit.KEPT_DAYS + 2)  # noqa: DTZ005 -- two days of slack
    row = {"entry_id": "1", "acted_at": old, "who": "eve", "action": "sign in"}
    with store.writing() as cursor:
        cursor.register("old", pl.DataFrame([row]).to_arrow())
        cursor.execute("insert into state.audit_log by name select * from old")
    assert audit.entries(store)["who"].to_list() == ["eve"]

    audit.record(store, "ada", "sign in", address="192.0.2.9")
    number, digest = audit.verified(store).head
    store.close()
    of = ("audit", "--db", store.path)
    listed = run(*of, "--format", "json")
    checked, changed = (run(*of, "--head", f"{number}:{d}") for d in (digest, digest[::-1]))

    assert [row["who"] for row in json.loads(listed.stdout)] == ["ada"]
    assert checked.exit_code == 0
    assert "1 entries are as they were written." in checked.stderr
    assert changed.exit_code == 1
    assert "is another than it was" in changed.stderr


@each(  # what somebody with the file does to an entry, and the fault that is reported
    ("update state.audit_log set who = 'bob'", 2, "entry 2 was changed"),
    ("delete from state.audit_log", 2, "the entries before entry 3 were removed, 1 of them"),
    ("delete from state.audit_log", 1, "the entries before entry 2 were removed, 1 of them"),
    ("delete from state.audit_log", 3, "entry 3 was removed"),
    ("update state.audit_log set digest = 'new'", 3,
     "entry 3 was changed; entry 3, or one before it, is another than it was"),
)  # fmt: skip
def test_a_log_that_was_changed_is_not_as_it_was_written(store, change, number, expected):
    for who in ("ada", "eve", "ada"):
        audit.record(store, who, "sign in")
    noted = audit.verified(store).head
    with store.writing() as cursor:
        cursor.execute(f"{change} where entry_number = {number}")

    assert "; ".join(audit.verified(store, noted).faults) == expected


def test_an_entry_that_was_sent_twice_is_one(store):
    rows = pl.DataFrame(
        [{"entry_id": "1", "acted_at": datetime.now(), "who": "ada", "action": "x"}]  # noqa: DTZ005
    )
    for _ in range(2):
        audit.keep(store, Batch("audit_log", rows, "audit", "audit", "1"))

    assert audit.verified(store).entries == 1
