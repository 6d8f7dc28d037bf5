"""Recorded sources: real excerpts and exact formats in, the rows of the raw tables out.

Each case is read as a user reads it: by name and recognised by its content, plain and gzipped, and
a log as collectors hand it on, with a time before each line.
"""

import functools
import gzip
from datetime import datetime

import polars.selectors as cs
import pytest
from tests.ingest import golden_cases
from tests.ingest.golden_cases import CASES, expected_of, golden_path, input_of, name_of, of_cases

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text.json_lines import STAMPED
from goodput_ingest.run.ingest import ingest
from goodput_ingest.sources.registry import followed, recognise, sources

LOGS = {  # line by line, of programs whose output a collector may take in
    *followed(),
    *("nccl-ras", "nccl-tests", "node-power", "nvml"),
}
TAKEN_IN = datetime(2026, 8, 20, 14)  # noqa: DTZ001 -- moments are stored naive, in UTC
WITHOUT_TIMES = {
    # what has no time is rejected, or placed by other lines: a collector's is better
    *("hf_trainer_dictionaries_alone", "megatron_2020_without_time_or_samples"),
    *("hf_trainer_progress_bar", "hf_trainer_of_diffusers", "megatron_after_the_last_time"),
    *("megatron_2021_without_times", "nccl_watchdog_without_a_year", "nemo_steps_between_saves"),
    *("megatron_save_of_a_fork", "megatron_time_and_mean_of_an_iteration"),
    *("megatron_lines_beyond_all_reason", "error_before_the_first_time"),
    *("nemo_length_of_each_step", "deepspeed_step_0_and_pipeline_engine"),
    *("nemo_undated_steps_before_a_save", "megatron_deepspeed_fork", "pods_of_kubectl_and_stern"),
    *("undated_lines_of_two_kinds", "torchrun_root_cause_of_an_exception_printed_before"),
}
MANY = 10**9
OF_TIMES = ("benchmark_id", "extra")  # columns in which a row's time may stand, too
STAMPS = (
    b"2026-08-20T14:00:00Z ",  # kubectl logs --timestamps
    b"2026-08-20T14:00:00.000000000Z stdout F ",  # a container runtime (CRI)
    b"2026-08-20T16:00:00+02:00 ",
)


def of_content(path):
    """Return the name of the source that recognises a file, as the only one."""
    head = files.head(path)
    (name, *others) = [s.name for s in sources().values() if s.recognises(path, head)] or [None]
    assert others == []
    return name


def read(name, path, options):
    """Return all rows of a file by table, in the file's order, and its rejects."""
    found = {}
    for batch in sources()[name](path, options).extract():
        rows = batch.rows.with_columns(cs.float().fill_nan(None))  # NaN is not equal to itself
        found.setdefault(batch.table, []).extend(rows.to_dicts())
        found.setdefault("rejects", []).extend(
            {"line": reject.line, "reason": reject.reason} for reject in batch.rejects
        )
    return found


def copy_of(path, folder, content):
    folder = folder / path.parent.parent.name / path.parent.name  # names that a source may read
    folder.mkdir(parents=True)
    copy = folder / path.name
    copy.write_bytes(content)
    return copy


def is_line_based(case):
    """Say whether the case is a log without a collector's times."""
    path, name = input_of(case), name_of(case)
    content = path.read_bytes()
    documents = {("nccl-inspector", ".txt"), ("goodput-events", ".json"), ("nccl-tests", ".json")}
    is_document = (name, path.suffix) in documents
    is_table = path.suffix == ".csv"
    has_stamps = STAMPED.match(content.decode("utf-8", "replace")) is not None
    return name in LOGS and not (is_document or is_table or has_stamps)


@of_cases(CASES)
def test_a_recorded_file_gives_these_rows(store, case):
    given = input_of(case)

    summary = ingest(store, "auto", [given], golden_cases.options_of(case))
    found = golden_cases.rows_of(store, {*summary.rows_by_table, "rejects"})

    assert found == expected_of(case, found) != {}
    assert of_content(given) == name_of(case)


@of_cases(golden_cases.FIRST.values())
def test_a_file_that_is_read_again_or_packed_gives_the_same_rows(store, tmp_path, case):
    given, name, options = input_of(case), name_of(case), golden_cases.options_of(case)
    ingest(store, name, [given], options)

    assert ingest(store, name, [given], options).rows_new == 0
    packed = copy_of(given, tmp_path, gzip.compress(given.read_bytes()))
    assert of_content(packed) == name
    assert read(name, packed, options) == read(name, given, options)


@functools.cache
def plain_rows(case):
    """Return what a case's file gives as it is."""
    return read(name_of(case), input_of(case), golden_cases.options_of(case))


@pytest.mark.parametrize("stamp", STAMPS, ids=["kubectl", "cri", "offset"])
@of_cases(case for case in CASES if is_line_based(case))
def test_a_collectors_time_is_of_lines_that_have_none(stamp, tmp_path, case):
    given, name, options = input_of(case), name_of(case), golden_cases.options_of(case)
    lines = given.read_bytes().splitlines(keepends=True)

    stamped = copy_of(given, tmp_path, b"".join(stamp + line for line in lines))

    assert recognise(stamped) is sources()[name]
    rows, plain = read(name, stamped, options), plain_rows(case)
    if case.name in WITHOUT_TIMES:
        assert rows["job_events"]
        assert len(rows["rejects"]) <= len(plain["rejects"])
        return
    assert rows.keys() == plain.keys()
    for table, of_table in rows.items():
        for row, as_was in zip(of_table, plain[table], strict=True):
            changed = {column: row[column] for column in row if row[column] != as_was[column]}
            times = [column for column, value in changed.items() if value == TAKEN_IN]
            assert changed.keys() <= {*times, *(OF_TIMES if times else ())}


LONG = [
    golden_path("job_log/megatron_two_lives_and_a_hang"),
    golden_path("nccl_inspector/records_without_a_header"),
    golden_path("nvml/four_gpus_with_incomplete_gpm"),
    golden_path("slurm/22_05_sacct_steps_and_duplicates"),
]
# of each source whose files grow line by line
GROWING = [case for case in CASES if is_line_based(case) and name_of(case) != "nccl-tests"]
OF_LINES = of_cases({name_of(case): case for case in [*GROWING, *LONG]}.values())


@OF_LINES
def test_a_file_read_as_it_grows_gives_what_is_new_and_its_rows(store, tmp_path, monkeypatch, case):
    given, name, options = input_of(case), name_of(case), golden_cases.options_of(case)
    lines = given.read_bytes().splitlines(keepends=True)
    sizes = {"lines_per_part": len(lines) // 6 + 1, "bytes_per_part": MANY}
    monkeypatch.setattr(files.parts, "__kwdefaults__", sizes)
    path = copy_of(given, tmp_path, b"".join(lines[: len(lines) * 2 // 3]))

    first = ingest(store, name, [path], options)
    path.write_bytes(given.read_bytes())
    grown = ingest(store, name, [path], options)
    again = ingest(store, name, [path], options)

    expected = expected_of(case, {})
    assert golden_cases.rows_of(store, {file[9:-4] for file in expected} - {"rejects"}) == {
        file: rows for file, rows in expected.items() if file != "expected_rejects.csv"
    }
    assert first.rows_new > 0
    assert grown.rows_new < sum(rows.count("\n") for rows in expected.values())
    assert again.rows_new == 0


@OF_LINES
def test_of_a_gzip_file_that_was_cut_what_came_before_is_kept_and_a_reject_says_so(tmp_path, case):
    given, name, options = input_of(case), name_of(case), golden_cases.options_of(case)
    packed = gzip.compress(given.read_bytes())

    cut = read(name, copy_of(given, tmp_path, packed[:-10]), options)

    assert any("cut or damaged" in reject["reason"] for reject in cut["rejects"])
    assert any(rows for table, rows in cut.items() if table != "rejects")
