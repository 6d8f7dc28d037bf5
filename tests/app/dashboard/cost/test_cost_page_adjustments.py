"""The Cost page: notes, disputes and credits beside their lines, and who may write them."""

import pytest
from tests.app.cost_page import DAY, PRICED, cost_store
from tests.app.opened_page import press, table, texts

from goodput_app.access.identity import Role
from goodput_app.settings import settings
from goodput_billing.statement.statement import statement
from goodput_queries import audit

HOSTILE = "<script>alert(1)</script> [x](http://evil)"


@pytest.fixture(scope="module")
def closed(empty_database, tmp_path_factory):
    """Give jobs at 2 dollars on two days; the first is closed: nlp pays 48."""
    for store in cost_store(empty_database, tmp_path_factory, PRICED):
        assert statement(store, DAY, settings().statement, closes_now=True).is_closed
        yield store


def test_a_dispute_is_written_shown_beside_its_line_and_resolved_with_a_credit(
    closed, cost, as_person
):
    as_person(Role.FINANCE)
    app = cost(closed, day=str(DAY), line="c|nlp")
    assert "There are no notes, disputes or credits" in texts(app)
    assert _form(app).expanded, "of the picked row"
    assert not _form(cost(closed, day=str(DAY))).expanded

    app.selectbox(key="adjust_kind").set_value("dispute")
    app.text_input(key="adjust_reason_0").set_value(HOSTILE)
    app = press(app, "Write")
    assert [said.value for said in app.success] == [f"Dispute on {DAY} written."]
    (row,) = table(app, "adjustment_id").to_dicts()
    assert (row["kind"], row["status"], row["account"]) == ("Dispute", "open", "nlp")
    assert (row["reason"], row["made_by"]) == (HOSTILE, "ada")
    beside = table(app, "label", "adjustments").select("label", "adjustments").rows()
    assert dict(beside)["nlp"] == "1 open dispute"

    app.text_input(key="resolve_amount_1").set_value("5")
    app.text_input(key="resolve_reason_1").set_value("switch failed")
    app = press(app, "Resolve")

    assert not app.exception, app.exception
    shown = table(app, "adjustment_id", "amount").select("kind", "status", "amount").rows()
    assert sorted(shown, key=str) == [
        ("Credit", "not booked yet", 5.0),
        ("Dispute", "accepted", None),
        ("Resolution", "accepted", None),
    ]
    entries = audit.entries(closed).select("who", "action", "subject", "from_address").rows()
    (resolved, written) = (entry for entry in entries if entry[1] != "sign in")
    assert written == (
        "ada", "write a note or dispute", f"dispute: {DAY}, account nlp", "192.0.2.9",
    )  # fmt: skip
    assert resolved[1] == "give a credit or resolve a dispute"
    assert resolved[2].endswith(f"{row['adjustment_id']} accepted, credit of 5")


def _form(app):
    return next(one.proto for one in app.expander if one.label.startswith("Write a note"))
