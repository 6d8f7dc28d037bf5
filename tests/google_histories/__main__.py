"""Compare goodput with ml-goodput-measurement and the truth on made-up histories.

    python -m tests.google_histories --count 120 --google /path/to/venv/bin/python

Prints one line a history whose ETTR is off and a summary; exits 1 where one was not matched to its
job runs or is off by more than the tolerance. Without --google the package is not asked.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.google_histories.history import make
from tests.google_histories.ours import measured

TOLERANCE = 0.03  # of ETTR
REFERENCE = Path(__file__).with_name("google_reference.py")


def main():
    """Compare, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.google_histories")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--google", help="a Python that has ml-goodput-measurement")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        histories = [make(seed) for seed in range(given.first, given.first + given.count)]
        paths = [Path(folder) / history.name for history in histories]
        ours = [
            measured(h.write(path), path / "fleet.duckdb")
            for h, path in zip(histories, paths, strict=True)
        ]
        google = _google_s(given.google, paths) if given.google else [None] * given.count
    return _report(histories, ours, google)


def _google_s(python, folders):
    files = [str(folder / "goodput.jsonl") for folder in folders]
    answer = subprocess.run([python, str(REFERENCE), *files], check=True, capture_output=True)
    return list(json.loads(answer.stdout))


def _report(histories, ours, google):
    off = []  # from the interval of what evidence leaves open
    open_ = []
    google_off = []
    unmatched = 0
    for history, found, google_s in zip(histories, ours, google, strict=True):
        truth = history.truth
        assert truth is not None
        unmatched += not found.is_matched
        low, high = found.ettr or 0, found.ettr_hi or found.ettr or 0
        difference = max(low - truth.ettr, truth.ettr - high, 0)
        open_.append(high - low)
        off.append(difference)
        if google_s is not None:
            google_off.append(abs(google_s / truth.wall_s - truth.ettr))
        if difference > TOLERANCE or not found.is_matched:
            sys.stdout.write(f"{history.name}: truth {truth}, ours {found}\n")
    sys.stdout.write(f"{len(off)} histories, {unmatched} not matched\n")
    for name, values in (("goodput", off), ("ml-goodput-measurement", google_off)):
        if values:
            mean, most = sum(values) / len(values), max(values)
            sys.stdout.write(f"{name}: ETTR off by {mean:.4f} in the mean, {most:.4f} at most\n")
    sys.stdout.write(
        f"goodput leaves {sum(width > 0.001 for width in open_)} open, {max(open_):.4f} at most\n"
    )
    return int(bool(unmatched) or max(off) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
