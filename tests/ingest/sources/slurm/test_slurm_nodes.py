"""`scontrol show node` and `sinfo`: slots, MIG instances, states at the moment of asking."""

from datetime import UTC, datetime

import pytest

from goodput_ingest.formats import gres
from goodput_ingest.formats.gres import gpu_gres, slots
from goodput_ingest.sources.slurm.nodes import parse_nodes, parse_sinfo
from goodput_ingest.sources.slurm.states import ledger_state, words
from goodput_queries.errors import IngestError

AT = datetime(2026, 11, 20, 12, tzinfo=UTC).replace(tzinfo=None)
NODE = (
    "NodeName=node001 Arch=x86_64 CPUAlloc=0 CPUTot=16 Gres={gres} OS=Linux RealMemory=64000 "
    "State={state} Partitions=gpu,scavenge  CfgTRES=cpu=16 Reason={reason}"
)


def node(gres="gpu:h100:8", state="IDLE", reason=""):
    return NODE.format(gres=gres, state=state, reason=reason)


def tables(text, *, observed_at=AT):
    parsed = parse_nodes(text, cluster="lab", observed_at=observed_at)
    assert not any(p.rejects for p in parsed)
    return {p.table: p.rows for p in parsed}


def sinfo(text, *, observed_at=AT):
    return {p.table: p.rows for p in parse_sinfo(text, cluster="lab", observed_at=observed_at)}


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("IDLE", "up"),
        ("IDLE+RESERVED", "up"),
        ("MIXED+PLANNED", "planned"),
        ("DOWN+NOT_RESPONDING", "down"),
        ("DOWN*+DRAIN", "down"),
        ("IDLE+MAINTENANCE", "maintenance"),
        ("idle+maintenance", "maintenance"),
        ("mixed+maintenance+planned", "maintenance"),
        ("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "down"),
        ("IDLE+DRAIN+REBOOT_REQUESTED", "drained"),
        ("IDLE+PLANNED+RESERVED", "planned"),
        ("planned", "planned"),
        ("maint*", "maintenance"),
        ("reboot^", "maintenance"),
        ("IDLE+DYNAMIC_NORM+EXTERNAL", "up"),
        ("ALLOCATED+COMPLETING", "up"),
        ("IDLE+INVALID_REG", "down"),
        ("DOWN*", "down"),
        ("idle*", "down"),
        ("DOWN+DRAIN", "down"),
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
        ("plnd", "planned"),
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


def test_a_state_that_is_not_known_costs_the_state_and_not_the_nodes_gpus():
    parsed = parse_nodes(node(state="IDLE+WOBBLY"), cluster="lab", observed_at=AT)

    assert {p.table: p.rows.height for p in parsed} == {
        "nodes": 1,
        "gpus": 8,
        "gpu_instances": 0,
        "node_states": 0,
    }
    assert "'IDLE+WOBBLY', which is not known" in parsed[0].rejects[0].reason


def test_gpus_are_numbered_slots_of_their_node():
    found = tables(node("gpu:h100:2(S:0-1),shard:8"))["gpus"]

    assert found.select("gpu_uuid", "slurm_index", "gpu_model").rows() == [
        ("node001#0", 0, "h100"),
        ("node001#1", 1, "h100"),
    ]


def test_mig_instances_share_a_gpu_as_far_as_slices_go():
    """4 x 1 + 3 slices fill one GPU; the instance's index is its place in the node's list."""
    found = tables(node("gpu:1g.10gb:4,gpu:3g.40gb:1"))

    assert found["gpus"]["gpu_uuid"].to_list() == ["node001#0"]
    assert found["gpus"]["gpu_model"].to_list() == [None]
    assert found["gpu_instances"].select(
        "gpu_uuid", "gpu_instance", "compute_slices", "slurm_index"
    ).rows() == [
        *[("node001#0", f"1g.10gb.{n}", 1, n) for n in range(4)],
        ("node001#0", "3g.40gb.0", 3, 4),
    ]


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


def test_a_node_without_gpus_has_none_and_one_without_gres_is_unknown():
    assert tables(node("(null)"))["nodes"]["gpus"].to_list() == [0]
    assert tables(node().replace("Gres=gpu:h100:8 ", ""))["nodes"]["gpus"].to_list() == [None]


def test_a_snapshot_proves_a_state_for_its_moment_only():
    found = tables(node(state="DOWN*", reason="Not responding [slurm@2026-11-20T11:50:37]"))

    (row,) = found["node_states"].to_dicts()
    assert (row["state"], row["start_at"], row["end_at"]) == ("down", AT, AT)
    assert (row["reason"], row["user_name"]) == ("Not responding", "slurm")


def test_without_its_moment_a_snapshot_gives_no_state():
    found = tables(node(), observed_at=None)

    assert found["node_states"].is_empty()
    assert found["nodes"].height == 1


def test_a_reason_cannot_imitate_a_state():
    found = tables(node(state="DOWN", reason="x State=IDLE NodeName=node002 [eve@2026]"))

    assert found["node_states"]["state"].to_list() == ["down"]
    assert found["nodes"]["node"].to_list() == ["node001"]


def test_an_unbelievable_number_of_gpus_rejects_the_node():
    parsed = parse_nodes(node("gpu:h100:99999"), cluster="lab", observed_at=AT)

    assert [r.line for r in parsed[0].rejects] == [1]
    assert parsed[1].rows.is_empty()


def test_sinfo_gathers_the_partitions_of_a_node():
    found = sinfo(
        "node001|gpu*|mixed|mix|gpu:h100:8|1/15/0/16|64000|none|Unknown|Unknown\n"
        "node001|scavenge|mixed|mix|gpu:h100:8|1/15/0/16|64000|none|Unknown|Unknown\n"
    )

    (row,) = found["nodes"].to_dicts()
    assert row["partitions"] == ["gpu", "scavenge"]
    assert (row["cpus"], row["memory_bytes"], row["gpus"]) == (16, 64_000 * 1_048_576, 8)


def test_sinfo_with_a_header_may_have_other_columns():
    found = sinfo(
        "NODELIST|STATE|REASON|TIMESTAMP|USER\n"
        "node[001-002]|drained*|Xid 79, see T1|2026-11-20T11:50:37|root\n"
    )

    assert found["node_states"].select("node", "state", "reason", "user_name").rows() == [
        ("node001", "down", "Xid 79, see T1", "root"),
        ("node002", "down", "Xid 79, see T1", "root"),
    ]
    assert found["nodes"].is_empty()


@pytest.mark.parametrize(
    ("text", "why"),
    [("NODELIST|STATE\nn1|idle\n", "--observed-at"), ("n1|idle\n", "with a header")],
)
def test_a_sinfo_text_without_its_moment_or_known_columns_is_refused(text, why):
    with pytest.raises(IngestError, match=why):
        sinfo(text, observed_at=None)


def test_a_sinfo_row_with_a_bar_in_its_reason_is_rejected():
    parsed = parse_sinfo(
        "NODELIST|STATE|REASON|TIMESTAMP|USER\nnode001|down|a|b|2026-11-20T11:50:37|root\n",
        cluster=None,
        observed_at=AT,
    )

    assert "has 6 fields, expected 5" in parsed[0].rejects[0].reason


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
