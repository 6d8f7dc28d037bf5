"""A recording of NVML: readings in base units, rejects, files that grow or are truncated."""

from tests.ingest.nvml_lines import (
    FAST,
    MANY,
    META,
    read,
    record,
)

from goodput_ingest.formats import files


def test_the_meta_line_of_an_earlier_part_still_counts(store, tmp_path, monkeypatch):
    monkeypatch.setattr(
        files.parts, "__kwdefaults__", {"lines_per_part": 2, "bytes_per_part": MANY}
    )
    fast = [{**FAST, "t": 1795177771.0 + i} for i in range(9)]

    read(store, record(tmp_path / "nvml.jsonl", META, *fast))

    assert store.read("select count(*) from raw.gpu_samples").item() == 9
    assert store.read("select count(*) from state.ingested").item() == 6  # five parts and the GPUs


def test_the_same_lines_under_another_meta_line_are_other_samples(store, tmp_path, monkeypatch):
    monkeypatch.setattr(
        files.parts, "__kwdefaults__", {"lines_per_part": 1, "bytes_per_part": MANY}
    )
    other = {**META, "host": "other", "gpus": [{"index": 0, "uuid": "GPU-b"}]}

    read(store, record(tmp_path / "one.jsonl", META, FAST))
    read(store, record(tmp_path / "two.jsonl", other, FAST))

    found = store.read("select gpu_uuid from raw.gpu_samples order by 1").rows()
    assert found == [("GPU-a",), ("GPU-b",)]


def test_readings_of_a_part_are_stored_gpu_by_gpu(store, tmp_path):
    two = {**META, "gpus": [{"index": 0, "uuid": "GPU-a"}, {"index": 1, "uuid": "GPU-b"}]}
    fast = [{**FAST, "t": 1795177771.0 + i, "gpu": i % 2} for i in range(6)]

    read(store, record(tmp_path / "nvml.jsonl", two, *fast))

    found = store.read("select gpu_uuid, second(ts) from raw.gpu_samples order by rowid").rows()
    assert [gpu for gpu, _ in found] == ["GPU-a"] * 3 + ["GPU-b"] * 3
    assert [second for _, second in found] == [31, 33, 35, 32, 34, 36]


def test_an_empty_file_has_no_rows(store, tmp_path):
    path = tmp_path / "nvml.jsonl"
    path.touch()

    assert read(store, path).rows == 0
