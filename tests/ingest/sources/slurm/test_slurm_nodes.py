"""`scontrol show node` and `sinfo`: slots, MIG instances, states at the moment of asking."""

from datetime import UTC, datetime

import pytest

from goodput_ingest.formats import gres
from goodput_ingest.formats.gres import gpu_gres, slots
from goodput_ingest.sources.slurm.nodes import parse_sinfo
from goodput_ingest.sources.slurm.states import ledger_state, words
from goodput_queries.errors import IngestError

AT = datetime(2026, 11, 20, 12, tzinfo=UTC).replace(tzinfo=None)


def sinfo(text, *, observed_at=AT):
    return {p.table: p.rows for p in parse_sinfo(text, cluster="lab", observed_at=observed_at)}


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("IDLE", "up"),
        ("DOWN*+DRAIN", "down"),
        ("IDLE+MAINTENANCE", "maintenance"),
        ("idle+maintenance", "maintenance"),
        ("mixed+maintenance+planned", "maintenance"),
        ("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "down"),
        ("IDLE+DRAIN+REBOOT_REQUESTED", "drained"),
        ("IDLE+PLANNED+RESERVED", "planned"),
        ("maint*", "maintenance"),
        ("reboot^", "maintenance"),
        ("IDLE+DYNAMIC_NORM+EXTERNAL", "up"),
        ("ALLOCATED+COMPLETING", "up"),
        ("IDLE+INVALID_REG", "down"),
        ("idle*", "down"),
        ("ALLOCATED+DRAIN", "drained"),
        ("drng", "drained"),
        ("draining@", "drained"),
        ("idle@", "up"),
        ("idle^", "maintenance"),
        ("maint", "maintenance"),
        ("DOWN+MAINT", "maintenance"),
        ("idle$", "maintenance"),
        ("idle~", "powered_off"),
        ("alloc#", "powered_off"),
        ("idle%", "powered_off"),
        ("idle!", "powered_off"),
        ("IDLE+CLOUD+POWERED_DOWN", "powered_off"),
        ("mix-", "planned"),
        ("inval", "down"),
        ("fail", "down"),
        ("FUTURE", None),
        ("unk", None),
    ],
)
def test_a_state_of_slurm_is_a_state_of_the_ledger(printed, state):
    assert ledger_state(words(printed) or set()) == state


@pytest.mark.parametrize("text", ["", "gpu", "none", "8000", "(null)", "down town", "+"])
def test_other_words_are_no_state(text):
    assert words(text) is None


def test_a_gpu_takes_seven_slices_and_no_more():
    found = slots(gpu_gres("gpu:4g.40gb:2,gpu:3g.40gb:2"))

    assert [[i.name for i in slot.instances] for slot in found] == [
        ["4g.40gb.0", "3g.40gb.0"],
        ["4g.40gb.1", "3g.40gb.1"],
    ]


def test_whole_gpus_beside_mig_ones_keep_their_index():
    found = slots(gpu_gres("gpu:nvidia_a100_1g.5gb:7,gpu:a100:1"))

    assert [(slot.slurm_index, slot.model, len(slot.instances)) for slot in found] == [
        (0, "nvidia_a100", 7),
        (7, "a100", 0),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [("NODELIST|STATE\nn1|idle\n", "--observed-at"), ("n1|idle\n", "with a header")],
)
def test_a_sinfo_text_without_its_moment_or_known_columns_is_refused(text, why):
    with pytest.raises(IngestError, match=why):
        sinfo(text, observed_at=None)


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
