"""Nodes: slots, MIG instances, states at the moment of asking, and what jobs ask of them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.formats import gres
from goodput_ingest.formats.gres import gpu_gres, slots
from goodput_ingest.sources.slurm.features import feature_sets
from goodput_ingest.sources.slurm.jobs import parse_jobs
from goodput_ingest.sources.slurm.nodes import parse_sinfo
from goodput_ingest.sources.slurm.states import ledger_state, words
from goodput_queries.errors import IngestError


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        *((printed, "up") for printed in ("IDLE", "IDLE+DYNAMIC_NORM+EXTERNAL",
            "ALLOCATED+COMPLETING", "idle@")),
        *((printed, "down") for printed in ("DOWN*+DRAIN", "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP",
            "IDLE+INVALID_REG", "idle*", "inval", "fail")),
        *((printed, "maintenance") for printed in ("IDLE+MAINTENANCE", "idle+maintenance",
            "mixed+maintenance+planned", "maint*", "reboot^", "idle^", "maint", "DOWN+MAINT",
            "idle$")),
        *((printed, "drained") for printed in ("IDLE+DRAIN+REBOOT_REQUESTED", "ALLOCATED+DRAIN",
            "drng", "draining@")),
        ("IDLE+PLANNED+RESERVED", "planned"),
        ("mix-", "planned"),
        *((printed, "powered_off") for printed in ("idle~", "alloc#", "idle%", "idle!",
            "IDLE+CLOUD+POWERED_DOWN")),
        ("FUTURE", None),
        ("unk", None),
    ],
)  # fmt: skip
def test_a_state_of_slurm_is_a_state_of_the_ledger(printed, state):
    assert ledger_state(words(printed) or set()) == state


@pytest.mark.parametrize("text", ["", "gpu", "none", "8000", "(null)", "down town", "+"])
def test_other_words_are_no_state(text):
    assert words(text) is None


def test_a_gpu_takes_seven_slices_and_whole_gpus_beside_mig_ones_keep_their_index():
    found = slots(gpu_gres("gpu:4g.40gb:2,gpu:3g.40gb:2"))
    beside = slots(gpu_gres("gpu:nvidia_a100_1g.5gb:7,gpu:a100:1"))

    assert [[i.name for i in slot.instances] for slot in found] == [
        [f"4g.40gb.{n}", f"3g.40gb.{n}"] for n in (0, 1)
    ]
    assert [(slot.slurm_index, slot.model, len(slot.instances)) for slot in beside] == [
        (0, "nvidia_a100", 7), (7, "a100", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("index", ["99999999999", "1024", "0-2"])
def test_indices_that_cannot_be_leave_the_number_of_gpus(index):
    (found,) = gpu_gres(f"gpu:h100:1(IDX:{index})")

    assert (found.gpus, found.indices) == (1, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shard:a40:2(IDX:0)", {"shard": 2}),
        ("gres/mps:50", {"mps": 50}),
        ("gres/shard=2,gres/mps:a40=25", {"shard": 2, "mps": 25}),
        ("gpu:a40:1(IDX:0),shard:2(0/4,2/4)", {"shard": 2}),
        ("gpu:h100:8", {}),
        ("shard:a40:many", {}),
    ],
)
def test_parts_of_gpus_in_a_gres_text(text, expected):
    assert gres.parts(text) == expected


def test_a_sinfo_text_of_unknown_columns_is_refused():
    with pytest.raises(IngestError, match="with a header"):
        parse_sinfo("n1|idle\n", cluster="lab", observed_at=None)


NOON = datetime.fromisoformat("2026-11-20 12:00")
JOBS = GOLDEN / "slurm/scontrol_jobs_that_ask_for_nodes/input.txt"
JOB = JOBS.read_text().splitlines()[0]  # which waits for resources


# features as a job asks for them, number of nodes, sets of which a node needs one
FEATURES = {
    "ib": (1, ["ib"]),
    "h100&ib": (1, ["h100&ib"]),
    "h100|a100": (1, ["a100", "h100"]),
    "h100&ib|a100": (1, ["a100", "h100&ib"]),
    "h100|a100&ib": (1, ["a100&ib", "h100&ib"]),  # from left to right
    "(h100|a100)&ib": (1, ["a100&ib", "h100&ib"]),
    "h100&(ib|roce)": (1, ["h100&ib", "h100&roce"]),
    "[rack1|rack2]": (4, ["rack1", "rack2"]),
    "[rack1*2&rack2*4]": (6, ["rack1", "rack2"]),
    "rack1*2&rack2*4": (6, ["rack1", "rack2"]),
    "h100*4": (16, None),  # the other twelve may be any
    "h100*4 ": (4, ["h100"]),
    "h100&": (1, None),
    "(h100": (1, None),
    "h100)": (1, None),
    "": (1, None),
    "(" * 100 + "a" + ")" * 100: (1, None),
    "&".join(f"(a{n}|b{n})" for n in range(30)): (1, None),
}


@pytest.mark.parametrize(("text", "nodes", "sets"), [(k, *v) for k, v in FEATURES.items()])
def test_features_as_slurm_reads_them(text, nodes, sets):
    assert feature_sets(text, nodes) == sets


def test_listings_with_one_reason_are_one_row_in_ten_minutes(store):
    for minute, reason in enumerate(("Priority", "Priority", "Resources", "Resources")):
        at = NOON + timedelta(minutes=6 * minute)
        text = JOB.replace("Reason=Resources", f"Reason={reason}")
        _, _, asked = parse_jobs(text, cluster="lab", zone=ZoneInfo("UTC"), observed_at=at)
        store.load(asked.batch(source="slurm", origin="here", digest=f"{minute}"))

    rows = store.read(
        "select minute(observed_at), reason from raw.job_requests order by all"
    ).rows()
    assert rows == [(6, "Priority"), (18, "Resources")]


@pytest.mark.parametrize(("cluster", "why"), [(None, "--cluster"), ("lab", "--timezone")])
def test_cluster_and_zone_are_asked_for(cluster, why):
    with pytest.raises(IngestError, match=why):
        parse_jobs(JOB, cluster=cluster, zone=None)
