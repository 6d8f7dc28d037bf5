from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.module_order.spread import WAITING, spread


def test_modules_that_wait_for_programs_are_apart() -> None:
    names = ["a", *WAITING, *"bcdefghijklmnopq"]
    tests: list[Any] = [SimpleNamespace(path=Path(f"{n}.py"), n=i) for n in names for i in (1, 2)]

    found = spread(tests)

    assert sorted(map(id, found)) == sorted(map(id, tests))
    order = [test.path.stem for test in found[::2]]
    places = [order.index(name) for name in WAITING]
    assert min(b - a for a, b in pairwise(places)) >= 3
    assert [name for name in order if name not in WAITING] == [*"abcdefghijklmnopq"]
    assert all(one.n == 1 for one in found[::2])


def test_modules_that_wait_exist() -> None:
    assert {path.stem for path in Path(__file__).parents[1].rglob("test_*.py")} >= set(WAITING)
