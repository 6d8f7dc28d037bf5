"""Cases made after public reports: each is read as its text says, and gives what it expects.

All are read into one database, a cluster each. A case without a test here fails the first one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from tests.external.reports.repros import NEEDED, REPROS, gpu_s

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.check import check
from goodput_queries.scope import Scope

pytestmark = NEEDED


@dataclass(frozen=True)
class Case:
    """A folder of `field`, as it is or changed; options: of its command."""

    folder: str
    change: Callable[[str], str] | None = None
    without: tuple[str, ...] = ()
    observed_at: datetime | None = None
    node: str | None = None


def saved(word):
    """Return a change to what a log calls a save."""
    return lambda text: text.replace("checkpoint at it", f"checkpoint {word} it")


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


def profiling_blank(text):
    return re.sub(
        r"^(DCGM_FI_PROF_)PCIE_TX_BYTES(\{.*\}) (\S+)",
        r"\1SM_ACTIVE\2 140737488355328.0",
        text,
        flags=re.MULTILINE,
    )


LATE_RANKS = [(1, 2), (0, 2), (1, 8), (0, 8), (7, 3)]
HALF_PAST_TWO, THREE = (datetime(2026, 11, 20, *at) for at in ((14, 30), (15,)))  # noqa: DTZ001
UNTRACKED = "7-slurm-untracked-gres"
OFF_THE_BUS = "8-off-the-bus-continued"
CASES = {
    "two times": Case("1-megatron-two-times"),
    "saved at": Case("2-megatron-saved-at"),
    "saved from": Case("2-megatron-saved-at", saved("from")),
    **{f"ranks {late}": Case("3-unlabelled-ranks", ranks(*late)) for late in LATE_RANKS},
    "vgpu": Case("4-dcgm-vgpu"),
    "blank": Case("5-one-blank-metric"),
    "blank profiling": Case("5-one-blank-metric", profiling_blank),
    "shards": Case("6-slurm-shard", observed_at=THREE),
    "untracked": Case(UNTRACKED, observed_at=HALF_PAST_TWO),
    "untracked without jobs": Case(UNTRACKED, without=("jobs.txt",), observed_at=HALF_PAST_TWO),
    "dmesg": Case(OFF_THE_BUS, without=("journal.log",), node="n2"),
    "journal": Case(OFF_THE_BUS, without=("dmesg.log",), node="n1"),
    "nim": Case("9-llm-page-as-gpu-page", observed_at=THREE, node="nim1"),
    "nim of no host": Case("9-llm-page-as-gpu-page", observed_at=THREE),
    "amd": Case("10-amd-no-partitions"),
}


@dataclass(frozen=True)
class Cluster:
    """A case that was read; rejects: how many rows of it."""

    name: str
    store: object
    rejects: int

    def raw(self, columns, table):
        """Return columns of its rows of a raw table."""
        return self.store.read(f"select {columns} from raw.{table} where cluster = $1", [self.name])

    def of_gpus(self, columns, table):
        """Return columns of the rows about its GPUs of a raw table."""
        return self.store.read(
            f"select {columns} from raw.{table} "
            "where gpu_uuid in (select gpu_uuid from raw.gpus where cluster = $1)",
            [self.name],
        )

    def mart(self, sql):
        """Return the rows of a select from marts, which show it alone."""
        return self.store.read(sql, scope=Scope(cluster=self.name))

    def gpu_s(self, *by):
        """Return its GPU-seconds by these keys."""
        return gpu_s(self.store, *by, cluster=self.name)

    def ratio(self, name):
        """Return a ratio of the summary, to a tenth of a percent."""
        return round(self.mart(f"select {name}_ratio from marts.goodput_summary").item(), 3)


def as_cluster(text, name, number):
    """Return a file as one of a cluster of its own, with GPUs of its own."""
    text = re.sub(r"^(amd|jz|lab)\|", f"{name}|", text, flags=re.MULTILINE)
    return text.replace("GPU-11111111", f"GPU-{number:08}")


@pytest.fixture(scope="module")
def clusters(new_store, tmp_path_factory):
    """Give all cases, read and built."""
    store = new_store()
    found = {}
    for number, (name, case) in enumerate(CASES.items()):
        folder = tmp_path_factory.mktemp("case")
        for file in (REPROS / "field" / case.folder).iterdir():
            if file.suffix != ".md" and file.name not in case.without:
                text = as_cluster(file.read_text("utf-8"), name, number)
                if case.change and file.name != "sacct.txt":
                    text = case.change(text)
                (folder / file.name).write_text(text)
        options = ReadOptions(
            cluster=name, zone=ZoneInfo("UTC"), node=case.node, observed_at=case.observed_at
        )
        summary = ingest(store, "auto", sorted(folder.iterdir()), options)
        found[name] = Cluster(name, store, summary.rejects)
    store.build()
    yield found
    store.close()


def test_each_case_has_a_test():
    cases = {path.name for path in (REPROS / "field").iterdir()} - {"README.md"}

    assert cases == {case.folder for case in CASES.values()}


def test_the_ledger_of_all_cases_balances(clusters):
    assert check(clusters["amd"].store)["violations"].sum() == 0


def test_time_and_mean_of_an_iteration(clusters):
    cluster = clusters["two times"]

    steps = cluster.raw("count(*) filter (where event = 'step')", "job_events")
    assert steps.item() == 40
    assert cluster.gpu_s()["step_unsplit"] == pytest.approx(40 * 15.9955 * 8)
    assert sum(cluster.gpu_s().values()) == 6000
    assert cluster.ratio("goodput") == 0.853
    flops = cluster.raw("max(gpu_flops) filter (where step = 2)", "job_events").item()
    assert flops == pytest.approx(92.8e12 * 15.9955, rel=1e-3)


@pytest.mark.parametrize("name", ["saved at", "saved from"])
def test_saves_in_the_words_of_a_fork(clusters, name):
    cluster = clusters[name]

    durable = cluster.raw("list_sort(list(step) filter (event = 'ckpt.durable'))", "job_events")
    assert durable.item().to_list() == [10, 20, 30, 40]
    assert cluster.gpu_s()["step_unsplit"] == 33_616
    assert "at_risk" not in cluster.gpu_s()
    assert cluster.ratio("goodput") == 0.915


@pytest.mark.parametrize("late", LATE_RANKS)
def test_ranks_that_write_the_same_without_a_label(clusters, late):
    cluster = clusters[f"ranks {late}"]

    assert cluster.mart("select count(*) from marts.attempts").item() == 1
    assert cluster.gpu_s()["step_unsplit"] == pytest.approx(320, abs=0.1)
    assert sum(cluster.gpu_s().values()) == pytest.approx(480)


READINGS = "count(*), min(gpu_busy_ratio), min(engine_active_ratio), min(power_w)"
MEMORY = "count(*), min(memory_used_bytes), max(memory_used_bytes)"


def test_shares_of_a_device_are_one_reading(clusters):
    cluster = clusters["vgpu"]

    assert cluster.of_gpus(READINGS, "gpu_samples").rows() == [(61, 0.71, 0.714, 70.5)]
    assert cluster.of_gpus(MEMORY, "gpu_samples").rows() == [(61, *[9000 * 2**20] * 2)]
    assert cluster.gpu_s() == {"busy_unclassified": 1800}
    assert cluster.of_gpus("count(distinct owner)", "gpu_owners").item() == 3


@pytest.mark.parametrize("name", ["blank", "blank profiling"])
def test_a_blank_value_voids_itself_alone(clusters, name):
    cluster = clusters[name]

    assert cluster.gpu_s() == {"busy_unclassified": 1800}
    assert cluster.of_gpus(READINGS, "gpu_samples").row(0)[:2] == (61, 0.9)
    assert cluster.rejects == 0


def test_blank_values_are_counted(clusters):
    blank = "select sum(n) from marts.data_quality where kind = 'blank values'"

    assert clusters["blank"].store.read(blank).item() == 2 * 61


def test_jobs_of_shards_hold_parts_of_gpus(clusters):
    found = clusters["shards"].gpu_s("user")

    assert found == {"u1": 3600, "u2": 1800, "u3": 1800, "u4": 1800, "None": 5400}


@pytest.mark.parametrize("name", ["untracked", "untracked without jobs"])
def test_gpus_in_use_are_held_also_by_nobody_known(clusters, name):
    cluster = clusters[name]

    assert cluster.gpu_s("user") == {"u1": 18_000, "None": 10_800}
    assert cluster.ratio("allocation") == 0.625


@pytest.mark.parametrize(("name", "node"), [("dmesg", "n2"), ("journal", "n1")])
def test_a_message_over_three_lines(clusters, name, node):
    cluster = clusters[name]

    found = cluster.raw("ts::varchar, node, kind, code, pci_bus_id", "gpu_events")
    expected = ("2026-11-20 14:00:43", node, "off_the_bus", 79, "00000000:b3:00.0")
    assert found.rows() == [expected]
    assert cluster.rejects == 0


def test_metrics_of_a_nim_are_of_serving(clusters):
    rows = clusters["nim"].raw("metric, value, endpoint, model", "serving_samples").rows()

    found = {row[0]: row[1] for row in rows}
    assert {row[2:] for row in rows} == {("nim1", "meta/llama-3.1-8b-instruct")}
    assert (found["requests_running"], found["requests_waiting"]) == (12, 3)
    assert found["kv_cache_ratio"] == 0.25


def test_without_an_endpoint_metrics_of_a_nim_are_refused(clusters):
    cluster = clusters["nim of no host"]

    (reason,) = cluster.store.read("select reason from raw.rejects")["reason"]
    assert cluster.rejects == 1
    assert "do not say which endpoint they are of; say its host with --node" in reason


def test_gpus_that_cannot_be_partitioned(clusters):
    cluster = clusters["amd"]

    gpus = cluster.raw("distinct node, gpu_model", "gpus").rows()
    assert gpus == [("w1", "AMD Instinct MI210")]
    assert cluster.of_gpus(READINGS, "gpu_samples").rows() == [(122, 0.88, None, 250)]
    assert cluster.gpu_s() == {"busy_unclassified": 3600}
    assert cluster.of_gpus("distinct owner", "gpu_owners").rows() == [("ns/ws-0",)]
