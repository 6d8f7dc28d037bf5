"""The page of runs shows those of a user and in a state, and a signed-in reader their own."""

import pytest
from tests.queries.conftest import steps

from goodput_app.dashboard.components.runs import run_filters


@pytest.fixture(scope="module")
def runs(made):
    made.node("a", 3)
    for number, (user, state) in enumerate(
        [("ann", "COMPLETED"), ("bob", "FAILED"), ("bob", "COMPLETED")]
    ):
        made.job(f"{number}", 0, 600, ["a"], 1, state, user_name=user)
        made.events(f"{number}", steps(1, 9, 60))
    made.store.build()
    return made.store


def shown(app):
    (frame,) = (f.value for f in app.dataframe if "run_name" in f.value and "state" in f.value)
    return sorted(frame["run_name"])


def options(app, param):
    return app.selectbox(key=f"scope_{param}").options


def test_users_and_states_are_offered_with_their_number_of_runs(runs, visit):
    app = visit(runs, "all_runs")

    assert options(app, "user") == ["All users", "bob (2)", "ann (1)"]
    assert set(options(app, "run_state")) == {"All states", "COMPLETED (2)", "FAILED (1)"}
    assert len(shown(app)) == 3


@pytest.mark.parametrize(
    ("filters", "number"), [({"user": "bob"}, 2), ({"user": "bob", "run_state": "FAILED"}, 1)]
)
def test_filters_of_the_link_leave_the_runs_that_they_name(runs, visit, filters, number):
    app = visit(runs, "all_runs", **filters)

    assert len(shown(app)) == number


def test_a_reader_who_has_runs_gets_to_them_by_one_click(runs, visit, monkeypatch):
    class Ann:
        name = "ann"

    monkeypatch.setattr(run_filters, "current_identity", lambda: Ann)

    app = visit(runs, "all_runs").button(key="my_runs").click().run()

    assert app.query_params["user"] == "ann"
    assert len(shown(app)) == 1
    assert not any(button.key == "my_runs" for button in app.button)
