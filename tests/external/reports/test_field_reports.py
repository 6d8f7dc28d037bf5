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
    return re.sub(r"^(DCGM_FI_PROF_)PCIE_TX_BYTES(\{.*\}) (\S+)",
                  r"\1SM_ACTIVE\2 140737488355328.0", text, flags=re.MULTILINE)  # fmt: skip


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
    "dmesg": Case(OFF_THE_BUS, without=("journal.log",), node="n1"),
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

    def mart(self, sql):
        """Return the rows of a select from marts, which show it alone."""
        return self.store.read(sql, scope=Scope(cluster=self.name))


def as_cluster(text, name, number):
    """Return a file as one of a cluster of its own, with GPUs of its own."""
    text = re.sub(r"^(amd|jz|lab)\|", f"{name}|", text, flags=re.MULTILINE)
    return text.replace("GPU-11111111", f"GPU-{number:08}")


@pytest.fixture(scope="module")
def clusters(module_store, tmp_path_factory):
    """Give all cases, read and built."""
    store = module_store()
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
    return found


def test_each_case_has_a_test():
    cases = {path.name for path in (REPROS / "field").iterdir()} - {"README.md"}

    assert cases == {case.folder for case in CASES.values()}


def test_the_ledger_of_all_cases_balances(clusters):
    assert check(clusters["amd"].store)["violations"].sum() == 0


# by what GPU time is asked for, some of the GPU-seconds, and all of them
SAVED = ("category", {"step_unsplit": 33_616, "at_risk": None}, 36_720)
RANKS = ("category", {"step_unsplit": 320}, 480)
BUSY = ("category", {"busy_unclassified": 1800}, 1800)
UNKNOWN_USERS = ("user", {"u1": 18_000, "None": 10_800}, 28_800)
GPU_S = {
    "two times": ("category", {"step_unsplit": 40 * 15.9955 * 8}, 6000),
    **dict.fromkeys(("saved at", "saved from"), SAVED),
    **{f"ranks {late}": RANKS for late in LATE_RANKS},
    **dict.fromkeys(("vgpu", "blank", "blank profiling"), BUSY),
    "shards": ("user", {"u1": 3600, "u2": 1800, "u3": 1800, "u4": 1800, "None": 5400}, 14_400),
    **dict.fromkeys(("untracked", "untracked without jobs"), UNKNOWN_USERS),
    "amd": ("category", {"busy_unclassified": 3600}, 3600),
}


@pytest.mark.parametrize("name", GPU_S)
def test_gpu_time_of_a_case(clusters, name):
    by, expected, total = GPU_S[name]

    found = gpu_s(clusters[name].store, by, cluster=name)

    assert {key: found.get(key) for key in expected} == pytest.approx(expected, abs=0.1)
    assert sum(found.values()) == pytest.approx(total)


@pytest.mark.parametrize(("name", "ratio", "expected"), [
    ("two times", "goodput", 0.853),
    *((name, "goodput", 0.915) for name in ("saved at", "saved from")),
    *((name, "allocation", 0.625) for name in ("untracked", "untracked without jobs")),
])  # fmt: skip
def test_a_ratio_of_a_case(clusters, name, ratio, expected):
    found = clusters[name].mart(f"select {ratio}_ratio from marts.goodput_summary").item()

    assert round(found, 3) == expected


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_read_whole_where_its_endpoint_is_known(clusters, name):
    assert clusters[name].rejects == (name == "nim of no host")


def test_an_engine_whose_endpoint_is_not_known_is_named(clusters):
    (reason,) = clusters["nim"].store.read("select reason from raw.rejects")["reason"]

    assert reason.startswith("the series of a serving engine (nvidia-nim) do not say which")


def test_ranks_that_write_the_same_are_one_attempt_and_blank_values_are_counted(clusters):
    for late in LATE_RANKS:
        found = clusters[f"ranks {late}"].mart("select count(*) from marts.attempts")
        assert found.item() == 1, late
    blank = "select sum(n) from marts.data_quality where kind = 'blank values'"
    assert clusters["blank"].store.read(blank).item() == 2 * 61


@pytest.mark.parametrize("name", ["dmesg", "journal"])
def test_a_message_over_three_lines_is_one_event(clusters, name):
    sql = "select kind, code, pci_bus_id from raw.gpu_events where cluster = $1"

    found = clusters[name].store.read(sql, [name])

    assert found.rows() == [("off_the_bus", 79, "00000000:b3:00.0")]
