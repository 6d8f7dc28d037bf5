"""The directives of SQL headers: each has a form, and layers that may have it."""

import re
from pathlib import Path

import pytest

from goodput_queries.catalog import header

README = Path(__file__).parents[3] / "queries" / "README.md"


def test_a_header_is_its_description_directives_and_columns():
    found = header.header(
        "temp",
        "readings",
        "-- Readings of a pass.\n-- grain: series, ts_ms\n"
        "-- materialised: inline; in 4 parts, since a core makes each\n"
        "-- before_ms: of the row before\n--   it, in milliseconds\nselect 1",
    )

    assert found.description == "Readings of a pass."
    assert found.directives == {"grain": "series, ts_ms", "materialised": "inline; in 4 parts"}
    assert found.columns == {"before_ms": "of the row before it, in milliseconds"}
    assert found.clause("materialised", "in") == "4 parts"


@pytest.mark.parametrize(
    ("layer", "line", "reason"),
    [
        ("marts", "times: by ts", "'times' is a directive of raw"),
        ("raw", "materialised: full", "'materialised' is a directive of staging, intermediate"),
        ("intermediate", "materialised: weekly", "'materialised: weekly' has not the form"),
        ("intermediate", "materialised: by hand", "'materialised: by hand' has not the form"),
        ("marts", "access: admins", "'access: admins' has not the form"),
        ("marts", "evaluated: last", "'evaluated: last' has not the form"),
        ("raw", "times: ts", "'times: ts' has not the form"),
        ("marts", "skip_if_empty:", "'skip_if_empty: ' has not the form"),
    ],
)
def test_a_directive_of_another_layer_or_form_is_named(layer, line, reason):
    with pytest.raises(ValueError, match=rf"{layer}\.runs: {re.escape(reason)}"):
        header.header(layer, "runs", f"-- {line}\nselect 1")


def test_the_table_of_directives_has_each():
    table = re.findall(r"^\| `(\w+)` \|", README.read_text("utf-8"), re.MULTILINE)

    assert table == list(header.FORMS)
