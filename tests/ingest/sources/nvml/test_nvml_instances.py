# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""MIG instances in a recording of NVML."""

from datetime import datetime

import pytest
from tests.ingest.nvml_lines import (
    FAST,
    META,
    read,
    record,
)


def with_instances(t, *instances):
    return {**META, "t": t, "gpus": [{**META["gpus"][0], "instances": list(instances)}]}


THREE = {"gi": 1, "profile": "3g.71gb", "slices": 3}
ONE = {"gi": 5, "profile": "1g.18gb", "slices": 1}


def test_readings_of_mig_instances_are_of_their_instance(store, tmp_path):
    meta = with_instances(1795177770.0, THREE, ONE)

    read(store, record(tmp_path / "nvml.jsonl", meta, {**FAST, "gi": 1}, {**FAST, "gi": 5}))

    found = store.read("select gpu_instance, power_w from raw.gpu_samples order by 1").rows()
    assert found == [("1", 690.5), ("5", 690.5)]


def test_an_instance_lasts_from_the_first_meta_line_that_has_it_to_the_first_without(
    store, tmp_path
):
    begin, cut, restart = 1795177770.0, 1795177830.0, 1795177890.0
    other = {**ONE, "gi": 1}

    read(
        store,
        record(
            tmp_path / "nvml.jsonl",
            with_instances(begin, THREE, ONE),
            with_instances(cut, other, ONE),
            with_instances(restart, other, ONE),
        ),
    )

    columns = "gpu_instance, profile, compute_slices, valid_from_at, valid_to_at"
    found = store.read(f"select {columns} from raw.gpu_instances order by all").rows()
    begin_at, cut_at = datetime(2026, 11, 20, 12, 29, 30), datetime(2026, 11, 20, 12, 30, 30)
    assert found == [
        ("1", "1g.18gb", 1, cut_at, None),
        ("1", "3g.71gb", 3, begin_at, cut_at),
        ("5", "1g.18gb", 1, begin_at, None),
    ]


@pytest.mark.parametrize(
    "instance", [{"gi": 1}, {**ONE, "slices": 8}, {**ONE, "gi": -1}, {**ONE, "profile": 3}, "1g"]
)
def test_a_meta_line_with_an_instance_that_cannot_be_is_rejected(store, tmp_path, instance):
    summary = read(store, record(tmp_path / "nvml.jsonl", with_instances(1795177770.0, instance)))

    assert (summary.rows_new, summary.rejects) == (0, 1)
