"""Which severity a finding of each rule has: by what it does, by its size, and once it is over."""

import pytest
from tests.queries.findings import given

from goodput_queries.catalog.rules import EFFECTS, OVER, SEVERITIES, rules

# rule: its severity, that by effect, and the threshold under whose GPU time it is a note
SMALL = "under finding_ticket_ms note"
IDLE = "under idle_ticket_ms note"
TABLE = f"""
build_refused: page, over note, {SMALL}
cluster_unavailable: page, over note, {SMALL}

fabric_fault: ticket, allocated page, over ticket, {SMALL}
gpu_error: ticket, allocated page, minor note, tested note, over ticket, {SMALL}
hang: ticket, gang page, over note, {SMALL}
no_step: ticket, gang page, over note, {SMALL}
node_down: ticket, allocated page, over note
silent_gpu: ticket, allocated page, over note
silent_source: ticket, no_data page, over note
source_failing: ticket, late note, no_data page, over note, {SMALL}

node_drained: note, awaited ticket, long ticket, over note, {SMALL}
silent_node: ticket, over note
link_down: ticket, over note, {SMALL}
slow_link: ticket, unconfirmed note, {SMALL}
slower_than_peers: ticket, unconfirmed note, {SMALL}
memory_errors: ticket, minor note, {SMALL}

gang_wait: ticket, over note, {SMALL}
idle_allocation: ticket, over note, {IDLE}
idle_with_demand: ticket, over note, {SMALL}
low_use: ticket, unconfirmed note, {IDLE}
reservation_idle: ticket, over note, {SMALL}
serving_standby: ticket, over note, {IDLE}
stranded_gpus: ticket, over note, {SMALL}
unused_gpus: ticket, over note, {IDLE}

infrastructure_failure: ticket, over note, {SMALL}
job_failure: ticket, over note, {SMALL}
time_limit: ticket, over note, {SMALL}
preempted: note, over note, {SMALL}
"""
TICKETS = """bad_node checkpoint_overhead communication_share cpu_starved faulty_gpu
    gaps_between_steps host_memory_full input_stall io_starved kv_cache_full latency_spike
    latency_tail loss_not_finite node_temperature objective_burn peer_sm_clock peer_temperature
    periodic_gaps queue_beside_idle rank_skew replica_imbalance slow_benchmark slow_rank
    slow_start socket_fallback steps_slower swap_in_use throttled_gpu uneven_workers use_drop"""
NOTES = """busy_without_work cpu_oversubscribed driver_skew ecc_off evidence_conflict
    frozen_series gpu_memory_full gpu_oversubscribed half_use idle_without_demand loss_diverged
    memory_growth node_idle_power nvlink_saturated peer_power peer_sm_active port_saturated
    power_drop rejected_values standing_energy standing_power standing_temperature
    stuck_profiling unclassified_time unexplained_wait"""


def expected():
    found = dict(line.split(": ") for line in TABLE.split("\n") if line)
    found |= dict.fromkeys(TICKETS.split(), f"ticket, {SMALL}")
    return found | dict.fromkeys(NOTES.split(), f"note, {SMALL}")


def of(rule):
    when = [f"{effect} {severity}" for effect, severity in sorted(rule.severity_when.items())]
    over = [text for text in when if text.startswith(OVER)]
    others = [text for text in when if text not in over]
    small = [f"under {rule.note_below} note"] if rule.note_below else []
    return ", ".join([rule.texts["severity"], *others, *over, *small])


def test_each_rule_has_the_severities_of_the_table():
    assert {rule.name: of(rule) for rule in rules()} == expected()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_each_effect_of_a_rule_is_shown_by_a_case(rule):
    cases = given.cases(rule.name, "fires")
    shown = {row.get("effect") for case in cases for row in case["expected"]}

    assert shown - {None} == rule.severity_when.keys() - {OVER}


def test_each_effect_is_of_a_rule():
    assert {effect for rule in rules() for effect in rule.severity_when} == EFFECTS.keys()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_page_that_is_over_is_none(rule):
    if SEVERITIES[0] in (rule.texts["severity"], *rule.severity_when.values()):
        assert rule.severity_when[OVER] in SEVERITIES[1:]
