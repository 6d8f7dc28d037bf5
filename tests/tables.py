"""Tests that are tables: cases of a test, what a function gives, or refuses, a row each."""

import inspect

import pytest

SECRET = "geheim"  # noqa: S105 -- in rows of tables, which no error repeats


def each(*rows):
    """Try a test with each row: its last parameters, in their order; without a tuple, the last.

    A table in place of the rows has a sentence for each, which names it.
    """
    ids = None
    if len(rows) == 1:
        ids, rows = [*rows[0]], [*rows[0].values()]

    def tried(test):
        names = [*inspect.signature(test).parameters]
        of_rows = names[-len(rows[0]) :] if isinstance(rows[0], tuple) else names[-1]
        return pytest.mark.parametrize(of_rows, rows, ids=ids)(test)

    return tried


def gives(function, *rows):
    """Make the test of a function: each row, as of `each`, is its arguments and what it returns."""

    @_named(rows)
    def test(row):
        *given, expected = row
        assert function(*given) == expected

    return test


def refuses(error, function, *rows):
    """Make the test of a function: each row is its arguments and words of the error it raises."""

    @_named(rows)
    def test(row):
        *given, words = row
        with pytest.raises(error) as caught:
            function(*given)
        assert words in str(caught.value)
        assert SECRET not in str(caught.value)

    return test


def _named(rows):
    """Return the mark of a test with one parameter: a row, which its texts and numbers name."""
    if isinstance(rows[0], dict):
        return pytest.mark.parametrize("row", rows[0].values(), ids=rows[0])
    return pytest.mark.parametrize("row", rows, ids=_words)


def _words(row):
    known = [str(part) for part in row if part is None or isinstance(part, str | int | float)]
    return "-".join(known)[:80]
