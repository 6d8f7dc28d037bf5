"""Processes that write to one lake at once, and killed ones: nothing is lost or doubled."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.queries.lake.s3_server import s3_server
from tests.queries.lake.writers import Writer, assert_whole, batch

from goodput_lake.tables.lake import Lake
from goodput_lake.upkeep import Compaction, compact, status
from goodput_queries.errors import StoreError


@pytest.fixture(scope="module")
def aws():
    with pytest.MonkeyPatch.context() as patch, s3_server() as environment:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield environment


@pytest.mark.slow
def test_many_killed_writers_lose_and_double_nothing(lake):
    """Nor does a compaction; they die at any moment, and the last ones finish."""
    chance = random.Random(24)  # noqa: S311 -- moments to kill at, no secrets
    every, true_kills = list(range(200)), 0
    for _ in range(40):
        writers = [Writer(lake.url, share) for share in (every, every, [])]
        true_kills += sum(writer.kill(chance.uniform(0, 1)) for writer in writers)
    Writer(lake.url, every).new_loads()
    Writer(lake.url, []).new_loads()

    assert true_kills > 60
    assert_whole(lake, 200)


@pytest.mark.machine
def test_a_lake_in_an_object_store_takes_threads_and_processes(aws):
    """Commits are conditional puts: of two writers of one version the second one tries again."""
    lake = Lake.create("s3://metrics/goodput", cluster="west", buckets=2)
    writer = Writer(lake.url, list(range(4)), aws)
    with ThreadPoolExecutor(2) as pool:
        new = sum(not loaded.is_repeat for loaded in pool.map(lake.append, map(batch, range(2, 6))))
    assert new + writer.new_loads() == 6
    compact(lake, Compaction(kept_h=0))
    assert_whole(lake, 6)
    assert status(lake)["files"].to_list() == [1, 1]
    assert lake.tables() == ["gpu_samples", "rejects"]


@pytest.mark.machine
@pytest.mark.usefixtures("aws")
def test_an_object_store_without_the_bucket_is_named():
    with pytest.raises(StoreError, match=r"s3://none/goodput"):
        Lake.open("s3://none/goodput")
