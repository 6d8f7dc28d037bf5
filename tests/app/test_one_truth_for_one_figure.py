"""Each figure is the same on every page that has it, in commands, reports and the API."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.applications import Starlette
from tests.app.command_line import run
from tests.app.opened_page import plain, sent, table, tile
from tests.app.served import ask

from goodput_app.server.api.routes import api_routes

WEEK = {"from": "2027-01-25T00:00:00Z", "to": "2027-02-01T00:00:00Z"}
OF_WEEK = ("--from", WEEK["from"], "--to", WEEK["to"], "--format", "json")
with Path(__file__).with_name("figures_of_two_weeks.csv").open(encoding="utf-8") as file:
    PLACES = list(csv.DictReader(file))
FIRST = {place["figure"]: place for place in reversed(PLACES)}


@pytest.fixture(scope="module")
def asked(two_weeks, visit, two_weeks_file, tmp_path_factory):
    """Give what asks a place of the second week, each page, command and view once."""
    closed = tmp_path_factory.mktemp("closed") / "week.duckdb"
    shutil.copyfile(two_weeks_file, closed)
    app, known = Starlette(routes=api_routes(two_weeks)), {}

    def answer(asks, of):
        words = of.split()
        if asks == "view":
            return ask(app, f"/api/v1/views/marts.{of}/rows", params=WEEK).json()["rows"]
        if asks in ("command", "rows"):
            result = run(*words, "--db", str(closed), *(OF_WEEK if asks == "rows" else ()))
            assert result.exit_code == 0, result.output
            return json.loads(result.stdout) if asks == "rows" else result.stdout
        return visit(two_weeks, words[0], **WEEK, **dict(word.split("=") for word in words[1:]))

    def once(asks, of):
        key = asks if asks in ("view", "command", "rows") else "page", of
        if key not in known:
            known[key] = answer(asks, of)
        return known[key]

    return once


def figure(found, place):
    """Return the number that a place has: at a pattern, on a tile, or as a sum of rows."""
    asks, at, columns = place["asks"], place["at"], place["reads"].split()
    if columns:
        rows = table(found, *columns).to_dicts() if asks == "table" else found
        name, _, value = at.partition("=")
        return sum(row[columns[-1]] or 0 for row in rows if str(row.get(name, "")) == value)
    if asks == "tile":
        numbers = {tile(found, at)}
    else:
        text = {"html": sent, "text": plain, "command": str}[asks](found)
        numbers = set(re.findall(at, text.replace("\\", "")))
    (number,) = numbers
    return float(number.strip("$% ").replace(",", ""))


@pytest.mark.parametrize("place", PLACES, ids=lambda of: f"{of['figure']}: {of['place']}")
def test_a_figure_is_the_same_in_each_place(asked, place):
    """They are as exact as their text: two digits after the point, or one of GPU-h and percent."""
    here, first = (
        float(one["scale"]) * float(figure(asked(one["asks"], one["of"]), one))
        for one in (place, FIRST[place["figure"]])
    )

    assert first > 0
    assert here == pytest.approx(first, abs=0.051)
