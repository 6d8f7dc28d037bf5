"""Works in processes of their own; what they call is here, so that little is imported."""

import contextlib
import os
import signal
import sys
from types import ModuleType

import duckdb
import pytest
from tests.benchmarks import meter


def test_a_work_alone_has_its_own_peak_and_one_here_has_none():
    assert meter.alone(meter.peak_bytes) > 1e6
    assert meter.together(meter.peak_bytes) is None


def test_a_work_alone_does_not_begin_with_the_main_module_of_who_asks(monkeypatch):
    """A page under test is the main module while it runs; nor are progress bars in the table."""
    page = ModuleType("__main__")
    page.__file__ = duckdb.__file__
    monkeypatch.setitem(sys.modules, "__main__", page)

    assert meter.alone(_draws_bars) is False


def _draws_bars():
    with contextlib.closing(duckdb.connect()) as connection:
        return connection.execute("select current_setting('enable_progress_bar')").fetchall()[0][0]


def test_what_a_work_raises_is_raised_and_a_killed_one_is_out_of_memory():
    with pytest.raises(ValueError, match="invalid literal"):
        meter.alone(int, "x")
    with pytest.raises(MemoryError, match="its process was killed"):
        meter.alone(_die)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)
