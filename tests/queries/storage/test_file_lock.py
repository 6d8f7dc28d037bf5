"""A lock file: who holds it, who may read it, and what becomes of it."""

import os
import stat

import pytest

from goodput_queries.errors import StoreError
from goodput_queries.storage.file_lock import hold_lock_file, is_held


def refusal(pid):
    return f"process {pid} works here"


def test_a_second_holder_is_refused_with_the_process_id_of_the_first(tmp_path):
    path = tmp_path / "lock"

    with hold_lock_file(path, refusal):
        assert is_held(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with (
            pytest.raises(StoreError, match=f"^process {os.getpid()} works here$"),
            hold_lock_file(path, refusal),
        ):
            pass
        assert is_held(path)

    assert not is_held(path)
    assert not path.exists()


def test_a_file_left_by_a_killed_process_is_taken_over(tmp_path):
    path = tmp_path / "lock"
    path.write_text("4194304999")

    assert not is_held(path)
    with hold_lock_file(path, refusal):
        assert path.read_text() == str(os.getpid())


def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    path = tmp_path / "lock"
    path.symlink_to(target)

    with pytest.raises(StoreError, match="cannot be written"), hold_lock_file(path, refusal):
        pass

    assert target.read_text() == "precious"


def test_a_folder_that_is_missing_is_named(tmp_path):
    path = tmp_path / "none" / "lock"

    assert not is_held(path)
    with (
        pytest.raises(StoreError, match=r"none/lock: cannot be written \(No such file"),
        hold_lock_file(path, refusal),
    ):
        pass
