"""What the page of a run calls it."""

import pytest

from goodput_app.dashboard.components.runs import run_parts


@pytest.mark.parametrize(
    ("run_id", "job_name", "expected"),
    [
        ("1037", "thermal-throttle-d3", ("thermal-throttle-d3", "1037")),
        ("1037", None, ("1037", None)),
        ("llm-pretrain", "sweep", ("llm-pretrain", "sweep")),
    ],
)
def test_a_name_comes_before_a_number(run_id, job_name, expected):
    assert run_parts.names({"run_id": run_id, "job_name": job_name}) == expected
