"""Random examples for tests that build databases of them, and how many."""

import os

from hypothesis import HealthCheck, Phase, given, settings

MORE = "GOODPUT_EXAMPLES"


def examples(few):
    """Return `few`, or as many times that as the environment says: `make oracle` tries more."""
    return few * int(os.environ.get(MORE, "1"))


def drawn(strategy, few):
    """Return `examples(few)` of a strategy, to be the clusters of one database.

    They are the same each time: a suite that fails now and then is no specification.
    """
    found = []

    @settings(max_examples=examples(few), deadline=None, phases=[Phase.generate], derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(strategy)
    def draw(example):
        found.append(example)

    draw()
    return found
