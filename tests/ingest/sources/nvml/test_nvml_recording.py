# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""A recording of NVML: readings in base units, rejects, files that grow or are truncated."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goodput_ingest.formats import files

if TYPE_CHECKING:
    from goodput_queries.storage.store import LocalStore


from tests.ingest.nvml_lines import (
    CAPTURE,
    FAST,
    GPM,
    GPM_COLUMNS,
    MANY,
    META,
    SLOW,
    Line,
    read,
    reasons,
    record,
)


def test_a_sample_is_kept_in_base_units(store: LocalStore, tmp_path: Path) -> None:
    read(store, record(tmp_path / "nvml.jsonl", META, FAST))

    (sample,) = store.read("select * exclude (load_sequence) from raw.gpu_samples").rows(named=True)
    assert sample == {
        "source": "nvml",
        "gpu_uuid": "GPU-a",
        "gpu_instance": "",
        "ts": datetime(2026, 11, 20, 12, 29, 31),
        "gpu_busy_ratio": 0.97,
        "memory_busy_ratio": None,
        "engine_active_ratio": 0.98,
        "sm_active_ratio": 0.9,
        "sm_occupancy_ratio": 0.4,
        "tensor_active_ratio": 0.5,
        "dram_active_ratio": 0.3,
        "fp64_active_ratio": 0.0,
        "fp32_active_ratio": 0.04,
        "fp16_active_ratio": 0.01,
        "power_w": 690.5,
        "energy_j": 2.0,
        "sm_clock_hz": 1.98e9,
        "memory_clock_hz": 3.201e9,
        "clocks_event_reasons": 4,
        "gpu_temperature_c": 55.0,
        "memory_temperature_c": 60.0,
        "memory_used_bytes": 500,
        "nvlink_tx_bytes_per_s": 2.0 * 1024 * 1024,
        "nvlink_rx_bytes_per_s": 1.0 * 1024 * 1024,
        "pcie_tx_bytes_per_s": 1.0 * 1024 * 1024,
        "pcie_rx_bytes_per_s": 3.0 * 1024 * 1024,
        "is_flagged": False,
    }


def test_a_meta_line_names_the_gpus_of_its_node(store: LocalStore, tmp_path: Path) -> None:
    read(store, record(tmp_path / "nvml.jsonl", META))

    (gpu,) = store.read("from raw.gpus").rows(named=True)
    assert (gpu["node"], gpu["gpu_index"], gpu["slurm_index"]) == ("vm", 0, 4)
    assert (gpu["gpu_uuid"], gpu["pci_bus_id"]) == ("GPU-a", "00000000:9b:00.0")
    assert (gpu["power_limit_w"], gpu["sm_clock_max_hz"]) == (700.0, 1.98e9)
    assert gpu["valid_from_at"] == datetime(2026, 11, 20, 12, 29, 30, 500_000)


@pytest.mark.parametrize("share", [float("nan"), None, "missing"])
def test_a_gpm_reading_with_a_missing_share_is_no_reading(
    store: LocalStore, tmp_path: Path, share: object
) -> None:
    gpm = {**dict.fromkeys(GPM, 0.0), "dram_bw_pct": share}
    if share == "missing":
        del gpm["dram_bw_pct"]

    read(store, record(tmp_path / "nvml.jsonl", META, {**FAST, "gpm": gpm}))

    assert store.read(f"select {GPM_COLUMNS} from raw.gpu_samples").row(0) == (None,) * 12
    assert store.read("select is_flagged, gpu_busy_ratio from raw.gpu_samples").row(0) == (
        True,
        0.97,
    )


def test_a_gpu_without_gpm_is_not_flagged(store: LocalStore, tmp_path: Path) -> None:
    without = {k: v for k, v in FAST.items() if k != "gpm"}

    read(store, record(tmp_path / "nvml.jsonl", META, without))

    columns = "is_flagged, sm_active_ratio"
    assert store.read(f"select {columns} from raw.gpu_samples").row(0) == (False, None)


@pytest.mark.parametrize(
    ("field", "value", "column"),
    [
        ("util_gpu_pct", 101, "gpu_busy_ratio"),
        ("util_gpu_pct", -1, "gpu_busy_ratio"),
        ("power_mw", 4294967295, "power_w"),
        ("power_mw", 10_000_001, "power_w"),
        ("power_mw", float("nan"), "power_w"),
        ("power_mw", "N/A", "power_w"),
        ("sm_mhz", True, "sm_clock_hz"),
        ("energy_mj", 10**400, "energy_j"),
        ("mem_used", 2**64 - 1, "memory_used_bytes"),
        ("temp_c", 2147483632, "gpu_temperature_c"),
    ],
)
def test_a_value_that_cannot_be_is_null_and_flags_the_sample(
    store: LocalStore, tmp_path: Path, field: str, value: object, column: str
) -> None:
    read(store, record(tmp_path / "nvml.jsonl", META, {**FAST, field: value}))

    found = store.read(f"select {column}, is_flagged, sm_active_ratio from raw.gpu_samples").row(0)
    assert found == (None, True, 0.9)


def test_a_memory_temperature_of_zero_means_no_sensor(store: LocalStore, tmp_path: Path) -> None:
    read(store, record(tmp_path / "nvml.jsonl", META, {**FAST, "mem_temp_c": 0}))

    found = store.read("select memory_temperature_c, is_flagged from raw.gpu_samples").row(0)
    assert found == (None, False)


def test_counters_of_a_slow_line_have_canonical_names_and_units(
    store: LocalStore, tmp_path: Path
) -> None:
    slow = {
        **SLOW,
        "viol_power_ns": 113_808_308_032,
        "remapped_rows": [1, 2, 0, 1],
        "nvlink_raw_tx_kib": 2,
        "links": {"tx_kib": [1, 2], "crc": [0, None]},
    }

    read(store, record(tmp_path / "nvml.jsonl", META, slow))

    found = dict(store.read("select metric, value from raw.gpu_samples_other").rows())
    assert found == {
        "throttle_power_s": 113.808308032,
        "rows_remapped_correctable_total": 1.0,
        "rows_remapped_uncorrectable_total": 2.0,
        "row_remap_pending": 0.0,
        "row_remap_failed": 1.0,
        "nvlink_raw_tx_bytes_total": 2048.0,
        "nvlink_tx_bytes_total": 3072.0,  # of crc one link is unknown, so the sum is
    }


def test_no_process_is_measured_and_no_list_is_unknown(store: LocalStore, tmp_path: Path) -> None:
    lines = (
        {**SLOW, "t": 1795177772.0, "procs": []},
        {**SLOW, "t": 1795177773.0, "procs": [[940, 14680064], [941, None]]},
        {**SLOW, "t": 1795177774.0, "procs": None},
    )

    read(store, record(tmp_path / "nvml.jsonl", META, *lines))

    found = store.read("select processes, pids from raw.gpu_processes order by ts").rows()
    assert found == [(0, []), (2, [940, 941])]


def test_the_node_is_that_of_the_last_meta_line(store: LocalStore, tmp_path: Path) -> None:
    host: Line = {
        "kind": "host",
        "t": 1795177771.0,
        "cpu_jiffies": {"user": 500, "system": 100, "idle": 300, "iowait": 100, "guest": 50},
        "memtotal_kb": 8,
        "cached_kb": 2,
        "disk_read_sectors": 4,
    }

    read(store, record(tmp_path / "nvml.jsonl", META, host))

    columns = (
        "node, cpu_busy_s, cpu_total_s, memory_total_bytes, page_cache_bytes, disk_read_bytes, "
        "disk_write_bytes"
    )
    found = store.read(f"select {columns} from raw.node_samples").row(0)
    assert found == ("vm", 6.0, 10.0, 8192, 2048, 2048, None)


def test_lines_that_name_nothing_known_are_rejected(store: LocalStore, tmp_path: Path) -> None:
    path = record(
        tmp_path / "nvml.jsonl",
        FAST,
        {"kind": "host", "t": 1795177771.0},
        META,
        {**FAST, "gpu": 7},
        {**FAST, "t": "2026-11-20T12:00:00"},
        {**FAST, "t": 1795177771000},
        {"kind": "clock", "t": 1795177771.0},
        {"kind": "psu", "t": 1795177771.0},
        "[1]",
        "",
        json.dumps(FAST)[:-20],
    )

    summary = read(store, path)

    assert summary.rows_new == 1  # the GPU
    assert reasons(store) == [
        (1, "no meta line before this one names GPU 0"),
        (2, "no meta line before this one names the node"),
        (4, "no meta line before this one names GPU 7"),
        (5, "t is a text that is not RFC 3339 with an offset"),
        (6, "t is out of range for seconds since 1970"),
        (8, "unknown kind 'psu'"),
        (9, "the line is a list, expected an object"),
        (11, reasons(store)[-1][1]),
    ]
    assert reasons(store)[-1][1].startswith("the line is cut or not JSON")


def test_the_meta_line_of_an_earlier_part_still_counts(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        files.parts, "__kwdefaults__", {"lines_per_part": 2, "bytes_per_part": MANY}
    )
    fast = [{**FAST, "t": 1795177771.0 + i} for i in range(9)]

    read(store, record(tmp_path / "nvml.jsonl", META, *fast))

    assert store.read("select count(*) from raw.gpu_samples").item() == 9
    assert store.read("select count(*) from state.ingested").item() == 6  # five parts and the GPUs


def test_the_same_lines_under_another_meta_line_are_other_samples(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        files.parts, "__kwdefaults__", {"lines_per_part": 1, "bytes_per_part": MANY}
    )
    other = {**META, "host": "other", "gpus": [{"index": 0, "uuid": "GPU-b"}]}

    read(store, record(tmp_path / "one.jsonl", META, FAST))
    read(store, record(tmp_path / "two.jsonl", other, FAST))

    found = store.read("select gpu_uuid from raw.gpu_samples order by 1").rows()
    assert found == [("GPU-a",), ("GPU-b",)]


def test_reading_twice_changes_nothing_and_a_grown_file_adds_what_is_new(
    store: LocalStore, tmp_path: Path
) -> None:
    path = record(tmp_path / "nvml.jsonl", META, FAST, SLOW | {"procs": []})
    read(store, path)
    again = read(store, path)
    with path.open("a") as file:
        file.write(json.dumps({**FAST, "t": 1795177775.0}) + "\n")
    grown = read(store, path)

    assert again.rows_new == 0
    assert grown.rows_by_table["gpu_samples"] == 1
    assert sum(grown.rows_by_table.values()) == 1


def test_a_cut_gzip_file_keeps_what_came_before_and_says_so(
    store: LocalStore, tmp_path: Path
) -> None:
    lines = [META, *({**FAST, "t": 1795177771.0 + i, "energy_mj": i * 7919} for i in range(500))]
    whole = gzip.compress("".join(json.dumps(x) + "\n" for x in lines).encode())
    path = tmp_path / "nvml.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])

    summary = read(store, path)

    assert 0 < summary.rows_by_table["gpu_samples"] < 500
    assert any("cut or damaged" in reason for _, reason in reasons(store))


def test_an_empty_file_has_no_rows(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "nvml.jsonl"
    path.touch()

    assert read(store, path).rows == 0


def test_a_share_that_this_gpu_never_has_does_not_spoil_the_others(
    store: LocalStore, tmp_path: Path
) -> None:
    gpm = {name: share for name, share in GPM.items() if name != "fp64_pct"}
    line = {**FAST, "gpm": gpm, "gpm_without": ["fp64_pct"]}

    read(store, record(tmp_path / "nvml.jsonl", META, line))

    columns = "sm_active_ratio, fp64_active_ratio, is_flagged"
    assert store.read(f"select {columns} from raw.gpu_samples").row(0) == (0.9, None, False)


def test_bytes_of_nvlink_5_are_summed_like_kib(store: LocalStore, tmp_path: Path) -> None:
    read(store, record(tmp_path / "n.jsonl", META, {**SLOW, "links": {"tx_bytes": [1, 2]}}))

    found = store.read("select metric, value from raw.gpu_samples_other").rows()
    assert found == [("nvlink_tx_bytes_total", 3.0)]


@pytest.mark.external
@pytest.mark.skipif(not CAPTURE.exists(), reason="needs $GOODPUT_EXTERNAL_DATA")
def test_the_recorded_session_is_read_whole(store: LocalStore) -> None:
    summary = read(store, CAPTURE / "nvml.jsonl.gz")

    assert summary.rejects == 0
    assert summary.rows_by_table == {
        "gpus": 4,
        "gpu_samples": 10698,
        "gpu_samples_other": 39840,
        "gpu_processes": 1328,
        "node_samples": 332,
    }
    flagged = store.read("select count(*) from raw.gpu_samples where is_flagged").item()
    assert flagged == 1139  # the readings without a DRAM share, one in ten
