"""`make oracle`: the product's ledger against the oracle's, over random small worlds.

    python -m tests.oracle --count 200 --seed 1

A world that differs is kept as native files, with its first differing cells printed; the same seed
gives the same world again.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.oracle.compare import compare
from tests.oracle.world import EXTRA, make

from goodput_queries.database import LocalStore

SHOWN = 8  # differing cells of a world


def main():
    """Compare worlds; return 1 where any differs."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.oracle")
    parser.add_argument("--count", type=int, default=200, help="number of worlds")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first world")
    parser.add_argument("--having", choices=EXTRA, nargs="*", default=[], help="add features")
    parser.add_argument(
        "--in-parts", action="store_true", help="read parts in any order, with a build after each"
    )
    given = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="oracle-"))
    empty = kept / "empty.duckdb"
    LocalStore(empty).close()
    began, differing, moves = time.monotonic(), 0, Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        folder = kept / f"world-{seed}"
        world = make(seed, given.having)
        differences = compare([world], folder, empty, build_every=1 if given.in_parts else None)[
            seed
        ]
        if not differences:
            shutil.rmtree(folder)
            continue
        differing += 1
        print(f"seed {seed}: {len(differences)} cells differ, kept in {folder}")  # noqa: T201
        for cell, ours, expected in differences[:SHOWN]:
            print(f"  {' '.join(map(str, cell))}: product {ours}, oracle {expected}")  # noqa: T201
        more = sorted({cell[2] for cell, ours, expected in differences if ours > expected})
        less = sorted({cell[2] for cell, ours, expected in differences if ours < expected})
        moves[f"product has more of {', '.join(more)}; less of {', '.join(less)}"] += 1
    for move, count in moves.most_common():
        print(f"{count:5} worlds: {move}")  # noqa: T201
    print(f"{given.count} worlds in {time.monotonic() - began:.0f} s, {differing} differ")  # noqa: T201
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
