"""Texts of strangers in CSV files: nothing runs, nothing turns its direction."""

import polars as pl
import pytest

from goodput_app.cli.output import as_json, encoded
from goodput_billing.render.safe_text import harmless, harmless_text

CELLS = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-1": "'-1",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "\n=1": "'\n=1",
    **{f"{sign}1": f"'{sign}1" for sign in "\uff1d\uff0b\uff20"},
    "a=1": "a=1",
    "": "",
    "\u202egnp.exe": "\\u202egnp.exe",
    "\u2066=1": "\\u2066=1",
    "\u202e=1": "\\u202e=1",
}


@pytest.mark.parametrize(("text", "cell"), CELLS.items())
def test_a_text_that_a_spreadsheet_would_run_or_turn_is_text(text, cell):
    found = pl.DataFrame({"a": [text]}).select(harmless(pl.col("a"))).item()

    assert found == harmless_text(text) == cell


def test_numbers_in_a_csv_answer_are_as_they_are():
    frame = pl.DataFrame({"n": [-1], "x": [-0.5], "t": ["=1"], "l": [["=1"]]})

    assert encoded(frame, "csv").decode() == 'n,x,t,l\n-1,-0.5,\'=1,"[""=1""]"\n'


def test_json_keeps_texts_and_spells_what_a_terminal_obeys():
    text = "=1 \x9b2J \x1b[2J \u202e"

    found = as_json(pl.DataFrame({"t": [text]}))

    assert found.isascii()
    assert pl.read_json(found.encode()).item() == text
