"""A target or a test that is not there would count each of its mutations as noticed."""

from tests.mutations.__main__ import ROOT, TARGETS


def test_every_target_and_every_test_of_it_is_there():
    for name, tests in TARGETS.items():
        assert (ROOT / name).is_file()
        assert all((ROOT / test).is_file() for test in tests)
