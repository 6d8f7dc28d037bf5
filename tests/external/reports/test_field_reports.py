"""Cases made after public reports: each is read as its text says, and gives what it expects.

A case without a test here fails the first one.
"""

import re
import shutil
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.external.reports.repros import NEEDED, REPROS, gpu_s

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check

pytestmark = NEEDED
UTC = ZoneInfo("UTC")
SETTINGS = {  # of a case's command
    "1-megatron-two-times": {"cluster": "amd", "zone": UTC},
    "2-megatron-saved-at": {"cluster": "jz", "zone": UTC},
    "6-slurm-shard": {"zone": UTC, "observed_at": datetime.fromisoformat("2026-11-20T15:00:00")},
    "7-slurm-untracked-gres": {
        "zone": UTC,
        "observed_at": datetime.fromisoformat("2026-11-20T14:30:00"),
    },
    "8-off-the-bus-continued": {"zone": UTC, "node": "n1"},
    "9-llm-page-as-gpu-page": {"observed_at": datetime.fromisoformat("2026-11-20T15:00:00")},
    "3-unlabelled-ranks": {"zone": UTC},
}
STEPS = "select count(*) from raw.job_events where event = 'step'"
READINGS = """select count(*), min(gpu_busy_ratio), min(engine_active_ratio), min(power_w)
    from raw.gpu_samples"""


@pytest.fixture
def read(store):
    """Read a case as its command does and return the store, built; `without`: files left out."""

    def read(case, *, without=(), folder=None, **more):
        given = {"cluster": "lab", **SETTINGS.get(case, {}), **more}
        files = sorted((folder or REPROS / "field" / case).iterdir())
        named = [f for f in files if f.suffix != ".md" and f.name not in without]
        store.found = ingest(store, "auto", named, ReadOptions(**given))
        store.build()
        assert check(store)["violations"].sum() == 0
        return store

    return read


@pytest.fixture
def altered(tmp_path):
    """Return a maker of a copy of a field case whose file is changed by a function."""

    def make(case, file, change):
        folder = tmp_path / case
        shutil.copytree(REPROS / "field" / case, folder, copy_function=shutil.copyfile)
        text = (folder / file).read_text()
        (folder / file).write_text(changed := change(text))
        assert changed != text
        return folder

    return make


def ratio(store, name):
    """Return a ratio of the summary, to a tenth of a percent."""
    return round(store.read(f"select {name}_ratio from marts.goodput_summary").item(), 3)


def test_each_case_has_a_test():
    tests = Path(__file__).read_text("utf-8")
    cases = {path.name for path in (REPROS / "field").iterdir()} - {"README.md"}

    assert {case for case in cases if f'"{case}"' not in tests} == set()


def test_time_and_mean_of_an_iteration(read):
    store = read("1-megatron-two-times")

    assert store.read(STEPS).item() == 40
    assert gpu_s(store)["step_unsplit"] == pytest.approx(40 * 15.9955 * 8)
    assert sum(gpu_s(store).values()) == 6000
    assert ratio(store, "goodput") == 0.853
    flops = store.read("select max(gpu_flops) from raw.job_events where step = 2").item()
    assert flops == pytest.approx(92.8e12 * 15.9955, rel=1e-3)


@pytest.mark.parametrize("word", ["at", "from"])
def test_saves_in_the_words_of_a_fork(read, altered, word):
    case, file = "2-megatron-saved-at", "slurm-7003.out"
    other = altered(
        case, file, lambda text: text.replace("checkpoint at it", f"checkpoint {word} it") + "\n"
    )

    store = read(case, folder=other)

    durable = "select step from raw.job_events where event = 'ckpt.durable' order by step"
    assert store.read(durable)["step"].to_list() == [10, 20, 30, 40]
    assert gpu_s(store)["step_unsplit"] == 33_616
    assert "at_risk" not in gpu_s(store)
    assert ratio(store, "goodput") == 0.915


def ranks(late_ms, count):
    """Return a change to a log of two ranks: so many, each so much later than the one before."""

    def change(text):
        lines = text.splitlines()
        steps, out = {}, []
        for line in lines:
            found = re.search(r"step:\s*(\d+) ", line)
            if not found:
                out.append(line)
            elif found[1] not in steps:
                steps[found[1]] = line
                out += [_later(line, n * late_ms) for n in range(count)]
        return "\n".join(out) + "\n"

    return change


def _later(line, ms):
    return re.sub(r",(\d{3}) - root", lambda found: f",{int(found[1]) + ms:03} - root", line)


@pytest.mark.parametrize(("late_ms", "count"), [(1, 2), (0, 2), (1, 8), (0, 8), (7, 3)])
def test_ranks_that_write_the_same_without_a_label(read, altered, late_ms, count):
    case, file = "3-unlabelled-ranks", "slurm-7005.out"
    folder = altered(case, file, ranks(late_ms, count)) if (late_ms, count) != (1, 2) else None

    store = read(case, folder=folder)

    assert store.read("select count(*) from marts.attempts").item() == 1
    assert gpu_s(store)["step_unsplit"] == pytest.approx(320, abs=0.1)
    assert sum(gpu_s(store).values()) == pytest.approx(480)


def test_shares_of_a_device_are_one_reading(read):
    store = read("4-dcgm-vgpu")

    samples = "select count(*), min(memory_used_bytes), max(memory_used_bytes) from raw.gpu_samples"
    assert store.read(READINGS).rows() == [(61, 0.71, 0.714, 70.5)]
    assert store.read(samples).rows() == [(61, *[9000 * 2**20] * 2)]
    assert gpu_s(store) == {"busy_unclassified": 1800}
    assert store.read("select count(distinct owner) from raw.gpu_owners").item() == 3


def profiling_blank(text):
    return re.sub(
        r"^(DCGM_FI_PROF_)PCIE_TX_BYTES(\{.*\}) (\S+)",
        r"\1SM_ACTIVE\2 140737488355328.0",
        text,
        flags=re.MULTILINE,
    )


@pytest.mark.parametrize("change", [None, profiling_blank])
def test_a_blank_value_voids_itself_alone(read, altered, change):
    case = "5-one-blank-metric"
    folder = altered(case, "scrape.prom", change) if change else None

    store = read(case, folder=folder)

    assert gpu_s(store) == {"busy_unclassified": 1800}
    assert store.read(READINGS).row(0)[:2] == (61, 0.9)
    blank = store.read("select n from marts.data_quality where kind = 'blank values'")
    assert blank["n"].to_list() == [61]


def test_jobs_of_shards_hold_parts_of_gpus(read):
    store = read("6-slurm-shard")

    found = gpu_s(store, "user")
    assert found == {"u1": 3600, "u2": 1800, "u3": 1800, "u4": 1800, "None": 5400}


def test_gpus_that_scontrol_names_are_held(read):
    store = read("7-slurm-untracked-gres")

    assert gpu_s(store, "user") == {"u1": 18_000, "None": 10_800}
    assert ratio(store, "allocation") == 0.625


def test_gpus_in_use_by_nobody_known_are_not_free(read):
    store = read("7-slurm-untracked-gres", without=["jobs.txt"])

    assert gpu_s(store, "user") == {"u1": 18_000, "None": 10_800}


@pytest.mark.parametrize("other", ["dmesg.log", "journal.log"])
def test_a_message_over_three_lines(read, other):
    store = read("8-off-the-bus-continued", without=[other])

    found = store.read("select ts::varchar, node, kind, code, pci_bus_id from raw.gpu_events")
    expected = ("2026-11-20 14:00:43", "n1", "off_the_bus", 79, "00000000:b3:00.0")
    assert found.rows() == [expected]
    assert store.found.rejects == 0


def test_metrics_of_a_nim_are_of_serving(read):
    store = read("9-llm-page-as-gpu-page", node="nim1")

    rows = store.read("select metric, value, endpoint, model from raw.serving_samples").rows()
    found = {row[0]: row[1] for row in rows}
    assert {row[2:] for row in rows} == {("nim1", "meta/llama-3.1-8b-instruct")}
    assert (found["requests_running"], found["requests_waiting"]) == (12, 3)
    assert found["kv_cache_ratio"] == 0.25


def test_without_an_endpoint_metrics_of_a_nim_are_refused(read):
    store = read("9-llm-page-as-gpu-page")

    (reason,) = store.read("select reason from raw.rejects")["reason"]
    assert "do not say which endpoint they are of; say its host with --node" in reason


def test_gpus_that_cannot_be_partitioned(read):
    store = read("10-amd-no-partitions")

    gpus = store.read("select distinct node, gpu_model from raw.gpus").rows()
    assert gpus == [("w1", "AMD Instinct MI210")]
    assert store.read(READINGS).rows() == [(122, 0.88, None, 250)]
    assert gpu_s(store) == {"busy_unclassified": 3600}
    assert store.read("select distinct owner from raw.gpu_owners").rows() == [("ns/ws-0",)]
