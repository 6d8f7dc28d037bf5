"""What `goodput ingest` says of files that give nothing, or less than they could."""

import pytest
from tests.app.command_line import run

RATES = "gpu_model,price_per_gpu_h,valid_from\n"
SINFO = "NODELIST|PARTITION|STATE|GRES\nn1|gpu*|idle|gpu:h100:8\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ingested")


def ingested(folder, source, name, text, *options):
    """Ingest a file with this text, or without one an empty folder."""
    path = folder / name
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    return run("ingest", source, str(path), "--db", str(folder / "one.duckdb"), *options)


def test_a_file_of_which_every_row_is_rejected_fails(folder):
    result = ingested(folder, "rates", "undated.csv", f"{RATES}H100,3,2026-01-01\n")

    assert result.exit_code == 1
    assert "Rejected: 1 row, see" in result.stderr
    assert result.stderr.endswith("nothing was ingested: every row was rejected.\n")


def test_a_file_with_one_good_row_does_not_fail(folder):
    rows = "H100,3,2026-01-01\nH100,3,2026-01-01T00:00Z\n"

    assert ingested(folder, "rates", "mixed.csv", RATES + rows).exit_code == 0


def test_an_empty_folder_is_named(folder):
    for source in ("auto", "slurm"):
        result = ingested(folder, source, f"nothing-{source}", None)

        assert result.exit_code == 1
        assert f"there are no files in {folder / f'nothing-{source}'}." in result.stderr


def test_an_empty_file_is_called_empty(folder):
    result = ingested(folder, "slurm", "empty.txt", "")

    assert result.stderr == f"{folder / 'empty.txt'}: slurm: the file is empty.\n"


def test_a_text_without_rows_is_no_failure(folder):
    result = ingested(folder, "slurm", "none.txt", "No reservations in the system\n")

    assert result.exit_code == 0
    none = folder / "none.txt"
    assert result.stderr == f"There are no rows in {none}; reading met no errors.\n"


def test_node_states_without_a_time_are_asked_for(folder):
    timeless = ingested(folder, "slurm", "sinfo.txt", SINFO)
    timed = ingested(folder, "slurm", "sinfo.txt", SINFO, "--observed-at", "2026-11-20T14:00Z")

    assert timeless.stderr.startswith("Node states need --observed-at: ")
    assert "--observed-at" not in timed.stderr
