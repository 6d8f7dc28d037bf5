"""The database between processes: held, shared, and collected into by one at a time."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from tests.ingest.fake_live import PATIENCE_S

from goodput_ingest.live.store_lease import Shared, collector_lock, is_collected
from goodput_queries.errors import StoreError


def test_between_leases_the_file_is_free(tmp_path, empty_database):
    stores = Shared(empty_database)
    with stores.lease() as first, stores.lease() as second:
        assert first is second
    sees = "import sys, duckdb; duckdb.connect(sys.argv[1]).close()"

    subprocess.run([sys.executable, "-c", sees, str(empty_database)], check=True, cwd=tmp_path)
    stores.close()


def test_a_file_that_another_process_has_is_a_stated_failure(empty_database):
    holds = (
        "import sys, duckdb; c = duckdb.connect(sys.argv[1]); print('has it', flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(empty_database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        other.stdout.readline()
        stores = Shared(empty_database, wait_s=0)
        with pytest.raises(StoreError, match="another process"), stores.lease():
            pass
        other.communicate()

    with stores.lease() as store:
        assert store.read("select 1").item() == 1


def test_two_threads_share_one_opening(empty_database):
    stores = Shared(empty_database)
    seen = []
    barrier = threading.Barrier(4, timeout=PATIENCE_S)

    def use():
        with stores.lease() as store:
            barrier.wait()
            seen.append(store)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 1


def test_one_process_collects_into_a_database(tmp_path):
    database = tmp_path / "fleet.duckdb"
    with collector_lock(database):
        assert is_collected(database)
        with pytest.raises(StoreError) as caught, collector_lock(database):
            pass
    assert str(caught.value) == (
        f"{database}: process {os.getpid()} collects into this database already. Stop that "
        "process first."
    )
    assert not is_collected(database)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.machine
def test_a_killed_collector_is_out_of_the_way(tmp_path):
    database = tmp_path / "fleet.duckdb"
    holds = (
        "import sys; from goodput_ingest.live.store_lease import collector_lock\n"
        "with collector_lock(sys.argv[1]): print('has it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        assert is_collected(database)
        other.send_signal(signal.SIGKILL)
        other.wait()
        with collector_lock(database):
            assert is_collected(database)


def test_a_memory_database_is_nobody_elses():
    with collector_lock(":memory:"), collector_lock(":memory:"):
        assert not is_collected(":memory:")
