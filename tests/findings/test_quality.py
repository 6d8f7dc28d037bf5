"""The rules of findings on a made-up fleet; `make findings` scores them on many."""

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.findings.__main__ import Score, built, limits, regains, score, subjects
from tests.findings.truth import expected
from tests.fleets.generate import generate


@pytest.mark.slow
def test_a_fleet_has_the_findings_that_were_put_into_it(tmp_path: Path) -> None:
    generate(tmp_path, gpus=64, hours=12, seed=77, start=datetime(2026, 11, 17, tzinfo=UTC))
    store = built(tmp_path)
    scores: dict[str, Score] = defaultdict(Score)
    score(expected(tmp_path, limits(store)), subjects(store), scores, 77)
    back, lost = regains(tmp_path, store)
    store.close()

    right = sum(of_rule.right.total() for of_rule in scores.values())
    assert right > 40
    assert sum(of_rule.wrong.total() for of_rule in scores.values()) <= 0.05 * right
    assert sum(of_rule.missed for of_rule in scores.values()) <= 0.05 * right
    assert back == pytest.approx(lost, rel=0.1)
    one_each = [scores[rule] for rule in ("link_down", "slow_benchmark")]
    assert [(of.cases, of.missed, of.wrong.total()) for of in one_each] == [(1, 0, 0)] * 2
