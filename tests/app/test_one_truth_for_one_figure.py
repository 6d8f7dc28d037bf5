"""Each figure is the same on every page that has it, in commands, reports and the API."""

import json
import re
import shutil

import pytest
from starlette.applications import Starlette
from tests.app.command_line import run
from tests.app.opened_page import plain, sent, table, tile
from tests.app.served import ask
from tests.tables import each

from goodput_app.server.api.routes import api_routes

WEEK = {"from": "2027-01-25T00:00:00Z", "to": "2027-02-01T00:00:00Z"}
OF_WEEK = ("--from", WEEK["from"], "--to", WEEK["to"], "--format", "json")
GROUPS = (
    *("Useful", "Slowdowns", "Saves, input, other", "Start-up and restore", "Allocated but idle"),
    *("Failures", "Unclassified", "Unallocated", "Not available"),
)
OVERVIEW, NODES, RUNS, COST = "fleet_overview", "nodes_and_one", "all_runs", "cost_statement"


class Week:
    """The pages, commands and answers about the second of two weeks, each asked once."""

    def __init__(self, store, visit, closed):
        self._store, self._visit, self._closed, self._known = store, visit, closed, {}
        self._app = Starlette(routes=api_routes(store))

    def _once(self, asked, *key):
        if key not in self._known:
            self._known[key] = asked()
        return self._known[key]

    def page(self, name=OVERVIEW, **params):
        """Return a page, Overview where none is named."""
        drawn = WEEK | params
        return self._once(lambda: self._visit(self._store, name, **drawn), name, *drawn.items())

    def command(self, *words):
        """Return what a command prints."""
        result = self._once(lambda: run(*words, "--db", self._closed), *words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def rows(self, *words):
        """Return the rows of a command for the week."""
        return json.loads(self.command(*words, *OF_WEEK))

    def view(self, mart, **row):
        """Return the only row of a view, or that with these values, as the API answers it."""
        path = f"/api/v1/views/marts.{mart}/rows"
        found = self._once(lambda: ask(self._app, path, params=WEEK).json()["rows"], mart)
        (one,) = (of for of in found if row.items() <= of.items())
        return one

    def budgets(self):
        """Return the table below the chart of budgets."""
        app = self.page(COST, part="")
        app.session_state["budgets_rows"] = True
        return table(app.run(), "budget_cost")

    def group(self, label):
        """Return GPU-h and dollars of a group of the ledger on Overview."""
        drawn = "".join(e.proto.body for e in self.page().get("html"))
        found = re.findall(r'"gp-group">.*?<br>([\d.,]+) GPU-\w+<br>\$?([\w.,]+)', drawn)
        hours, cost = found[GROUPS.index(label)]
        return value(hours), value(cost)


@pytest.fixture(scope="module")
def week(two_weeks, visit, two_weeks_file, tmp_path_factory):
    closed = tmp_path_factory.mktemp("closed") / "week.duckdb"
    return Week(two_weeks, visit, str(shutil.copyfile(two_weeks_file, closed)))


def value(text):
    return float(text.strip("$%h ").replace(",", "").removesuffix(" GPU-"))


def said(text, pattern):
    """Return the number that a text has at a pattern; the same where it has several."""
    (found,) = set(re.findall(pattern, text.replace("\\", "")))
    return value(found)


def of(frame, column, **row):
    """Return the sum of a column of a table, over the rows with these values."""
    return frame.filter(**row)[column].sum()


def summed(rows, column, **row):
    return sum(one[column] or 0 for one in rows if row.items() <= one.items())


def teams(week):
    return table(week.page(waste_team="nlp"), "own_waste_cost")


def accounts(week):
    return table(week.page(COST), "allocated_cost")


def report(week):
    return plain(week.page("weekly_report"))


def by_goodput(text):
    return said(text, r"Goodput \(% of cap.*?: ([\d.]+)")


def wasted(app):
    return said(sent(app), r'gp-wasted">\$([\d.,]+)<')


FIGURES = {
    "goodput, percent": {
        "Overview": lambda w: said(sent(w.page()), r'gp-big"[^>]*>([\d.]+) %'),
        "Report": lambda w: by_goodput(report(w)),
        "report weekly": lambda w: by_goodput(w.command("report", "weekly")),
        "Fleet": lambda w: value(tile(w.page("fleet_map"), "Goodput (% of capacity)")),
        "wall": lambda w: said(sent(w.page(view="wall")), r"<div><b>([\d.]+) %</b><em>Goodput"),
        "ratios": lambda w: value(tile(w.page(allocation="open"), "Scheduling ratio")) / 100
        * value(tile(w.page(allocation="open"), "Runtime ratio")),
        "API": lambda w: 100 * w.view("goodput_summary")["goodput_ratio"],
        "ledger": lambda w: 100 * summed(w.rows("ledger"), "gpu_ms", category="step_unsplit")
        / summed(w.rows("ledger"), "gpu_ms"),
    },
    "wasted, dollars": {
        "Overview": lambda w: wasted(w.page()),
        "Overview, team by team": lambda w: of(teams(w), "wasted_cost"),
        "Overview, loss by loss": lambda w: of(table(w.page(loss="x"), "fix"), "cost") - 48,
        "Report": lambda w: said(report(w), r"\$([\d.,]+) of \$[\d.,]+\*"),
        "report weekly": lambda w: said(w.command("report", "weekly"), r"\$([\d.,]+) of .*wasted"),
        "Nodes": lambda w: of(table(w.page(NODES), "wasted_cost"), "wasted_cost"),
        "Fleet": lambda w: of(table(w.page("fleet_map"), "rack", "wasted_cost"), "wasted_cost"),
        "Waste": lambda w: of(table(w.page("idle_gaps", against="week"), "direction"), "cost"),
        "API": lambda w: w.view("goodput_summary")["wasted_cost"],
    },
    "wasted by a team, dollars": {
        "Overview": lambda w: of(teams(w), "wasted_cost", team="nlp"),
        "Overview of the team": lambda w: wasted(w.page(team="nlp")),
        "Report": lambda w: said(report(w), r"\| nlp \| \$([\d.,]+)"),
        "Cost": lambda w: value(tile(w.page(COST), "Team-caused waste")),
        "Runs": lambda w: of(table(w.page(RUNS), "wasted_cost"), "wasted_cost", team="nlp"),
        "Run": lambda w: value(tile(w.page("one_run", run="c/3"), "Wasted")),
        "epilog": lambda w: said(w.command("epilog", "3", "--within", "600"),
                                 r"of which wasted \$([\d,.]+\d)"),
        "runs": lambda w: summed(w.rows("runs"), "wasted_cost"),
        "Failures on Overview": lambda w: w.group("Failures")[1],
        "API": lambda w: w.view("runs", run_id="3")["wasted_cost"],
    },
    "allocated, GPU-h": {
        "Overview": lambda w: said(plain(w.page(allocation="open")), r"([\d.,]+) GPU-h allocated"),
        "Cost": lambda w: said(plain(w.page(COST)), r"([\d.,]+) GPU-h allocated"),
        "Cost, an account": lambda w: of(accounts(w), "gpu_h", label="nlp"),
        "Fleet": lambda w: of(table(w.page("fleet_map"), "rack", "wasted_cost"), "held_gpu_h"),
        "Nodes": lambda w: of(table(w.page(NODES), "wasted_cost"), "held_gpu_h"),
        "Node": lambda w: said(plain(w.page(NODES, node="a")), r"Ledger of ([\d.,]+) GPU-h"),
        "Runs": lambda w: of(table(w.page(RUNS), "wasted_cost"), "held_gpu_h"),
        "API": lambda w: w.view("goodput_summary")["held_ms"] / 3_600_000,
    },
    "unallocated, dollars": {
        "Overview": lambda w: w.group("Unallocated")[1],
        "Cost": lambda w: of(accounts(w), "total_cost", label="Unallocated"),
        "Cost, loss": lambda w: of(table(w.page(COST), "fix"), "cost", label="Idle, no demand"),
        "Waste": lambda w: said(plain(w.page("idle_gaps", category="idle_no_demand")),
                                r"Idle, no demand: [\d.,]+ GPU-h, \$([\d.,]+)"),
        "ledger": lambda w: summed(w.rows("ledger"), "cost", category="idle_no_demand"),
    },
    "not available, GPU-h": {
        "Overview": lambda w: w.group("Not available")[0],
        "Cost": lambda w: of(accounts(w), "gpu_h", label="Not available"),
        "API": lambda w: w.view("goodput_summary")["unavailable_ms"] / 3_600_000,
    },
    "capacity, dollars": {
        "Overview": lambda w: said(sent(w.page()), r"wasted of \$([\d.,]+)<"),
        "Overview, tile": lambda w: said(plain(w.page(allocation="open")), r"\n\$([\d.,]+)\n"),
        "Cost": lambda w: value(tile(w.page(COST), "Total cost")),
        "Report": lambda w: said(report(w), r"\$[\d.,]+ of \$([\d.,]+)\*"),
        "API": lambda w: w.view("goodput_summary")["capacity_cost"],
    },
    "spent this month by an account, dollars": {
        "Report": lambda w: said(report(w), r"Budget of nlp: \$([\d.,]+) of"),
        "report weekly": lambda w: said(w.command("report", "weekly"), r"of nlp: \$([\d.,]+) of"),
        "Cost": lambda w: of(w.budgets(), "month_cost", account="nlp"),
    },
}  # fmt: skip


@each({
    f"{figure}: {place}": (figure, place) for figure, places in FIGURES.items() for place in places
})  # fmt: skip
def test_a_figure_is_the_same_in_each_place(week, figure, place):
    """They are as exact as their text: two digits after the point, or one of GPU-h and percent."""
    places = FIGURES[figure]
    first = next(iter(places.values()))(week)

    assert first > 0
    assert float(places[place](week)) == pytest.approx(first, abs=0.051)
