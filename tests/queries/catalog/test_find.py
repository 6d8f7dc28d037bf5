"""A view is found by its name, with or without its layer."""

import pytest

from goodput_queries.catalog.find import find_view
from goodput_queries.errors import QueryError


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("runs", "marts.runs"),
        ("raw.gpus", "raw.gpus"),
        ("gpus", "marts.gpus"),  # a mart comes before the raw table of its name
        ("rejects", "raw.rejects"),
    ],
)
def test_a_name_finds_a_view(name, found):
    assert find_view(name).qualified_name == found


def test_a_name_that_is_nearly_one_says_which():
    with pytest.raises(QueryError, match="Did you mean 'runs'"):
        find_view("rnus")
