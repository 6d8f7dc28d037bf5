"""Compare goodput with the truth on made-up histories of ml-goodput-measurement.

    python -m tests.google_histories --count 120

Prints one line a history whose ETTR is off and a summary; exits 1 where one was not matched to its
job runs or is off by more than the tolerance.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.google_histories.history import make, measured

TOLERANCE = 0.03  # of ETTR


def main():
    """Compare, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.google_histories")
    parser.add_argument("--count", type=int, default=120)
    given = parser.parse_args()
    off, left_open, unmatched = [], [], 0  # off: from the interval of what evidence leaves open
    for seed in range(given.count):
        history = make(seed)
        with tempfile.TemporaryDirectory() as folder:
            files = history.write(Path(folder) / history.name)
            found = measured(files, Path(folder) / "fleet.duckdb")
        low, high = found.ettr or 0, found.ettr_hi or found.ettr or 0
        off.append(max(low - history.truth.ettr, history.truth.ettr - high, 0))
        left_open.append(high - low)
        unmatched += not found.is_matched
        if off[-1] > TOLERANCE or not found.is_matched:
            sys.stdout.write(f"{history.name}: truth {history.truth}, ours {found}\n")
    sys.stdout.write(
        f"{len(off)} histories, {unmatched} not matched; ETTR off by {sum(off) / len(off):.4f} in "
        f"the mean, {max(off):.4f} at most; {sum(width > 0.001 for width in left_open)} left open, "
        f"{max(left_open):.4f} at most\n"
    )
    return int(bool(unmatched) or max(off) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
