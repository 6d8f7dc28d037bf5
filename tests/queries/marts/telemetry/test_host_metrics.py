"""Hosts and links between readings: shares of time, errors, lost links, over restarts."""

import pytest

from goodput_queries.scope import Scope

INTERVALS = "select * from marts.host_intervals order by node, end_ms"
LINKS = "select * from marts.link_errors order by node, kind, device, port"
EVENTS = "select * from marts.link_events order by node, start_at"
GB = 10**9


@pytest.fixture
def host(evidence):
    """Load readings of node `a`, a minute apart: a row of columns each."""
    evidence.node("a", 8)

    def load(rows, node="a", source="node-exporter", step_s=60):
        evidence.load(
            "node_samples",
            [
                {"node": node, "ts": evidence.at(step_s * number), **row}
                for number, row in enumerate(rows)
            ],
            source,
        )

    return load


@pytest.fixture
def port(evidence):
    """Load readings of a port of node `a`, a minute apart."""
    evidence.node("a", 8)

    def load(rows, device="mlx5_0", kind="infiniband", port="1", node="a", first_s=0):
        evidence.load(
            "link_samples",
            [
                {
                    "node": node, "kind": kind, "device": device, "port": port,
                    "ts": evidence.at(first_s + 60 * number), **row,
                }
                for number, row in enumerate(rows)
            ],
        )  # fmt: skip

    return load


def cpu(busy, total, iowait=0.0, steal=0.0):
    return {
        "cpu_busy_s": busy, "cpu_total_s": total, "cpu_iowait_s": iowait, "cpu_steal_s": steal
    }  # fmt: skip


def test_cpu_time_of_an_interval_is_shared_out(evidence, host):
    host([cpu(100.0, 1000.0), cpu(130.0, 1120.0, iowait=12.0, steal=6.0)])

    (row,) = evidence.store.read(INTERVALS).to_dicts()
    assert row["end_ms"] - row["start_ms"] == 60_000
    assert (row["cpu_busy_ratio"], row["cpu_iowait_ratio"], row["cpu_steal_ratio"]) == (
        0.25,
        0.1,
        0.05,
    )


def test_the_interval_of_a_restart_is_unknown_and_those_after_it_are_not(evidence, host):
    host([cpu(100.0, 1000.0), cpu(1.0, 30.0), cpu(31.0, 150.0)])

    found = evidence.store.read(INTERVALS)
    assert found["cpu_busy_ratio"].to_list() == [None, 0.25]


def test_memory_and_swap_are_what_is_in_use_and_no_swap_is_not_zero(evidence, host):
    host(
        [
            {"memory_total_bytes": 100, "memory_available_bytes": 60, "swap_total_bytes": 0,
             "swap_free_bytes": 0},
            {"memory_total_bytes": 100, "memory_available_bytes": 20, "swap_total_bytes": 50,
             "swap_free_bytes": 45},
            {"memory_total_bytes": 100, "memory_available_bytes": 30, "swap_total_bytes": 0,
             "swap_free_bytes": 0},
        ]
    )  # fmt: skip

    found = evidence.store.read(INTERVALS)
    assert found["memory_used_bytes"].to_list() == [80, 70]
    assert found["swap_used_bytes"].to_list() == [5, None]
    assert found["cpu_busy_ratio"].null_count() == 2


def test_of_two_sources_the_one_with_more_readings_counts(evidence, host):
    host([cpu(0.0, 0.0), cpu(60.0, 60.0), cpu(120.0, 120.0)])
    host([cpu(0.0, 0.0), cpu(0.0, 90.0)], source="nvml", step_s=90)

    assert evidence.store.read(INTERVALS)["cpu_busy_ratio"].to_list() == [1.0, 1.0]


def test_a_name_with_its_domain_is_the_node_that_the_scheduler_knows(evidence, host):
    evidence.job("7", 0, 600, ["a"], 8)
    host([cpu(0.0, 0.0), cpu(30.0, 60.0)], node="a.cluster.example")
    evidence.store.build()

    found = evidence.store.read(INTERVALS, scope=Scope(node="a"))
    assert found.select("cluster", "node", "cpu_busy_ratio").rows() == [("c", "a", 0.5)]


def test_errors_of_a_port_are_the_increase_over_hours_and_resets(evidence, port):
    """60 symbol errors, then the counter begins again and reaches 3; received and sent add up."""
    counters = [{"rx_errors": n, "tx_errors": 2 * n, "tx_drops": n} for n in range(61)]
    port(counters, device="eth0", kind="ethernet", port="")
    port([{"symbol_errors": 100 + n, "rx_bytes": n * GB} for n in range(61)])
    port([{"symbol_errors": 3, "rx_bytes": 61 * GB}], first_s=61 * 60)
    evidence.store.build()

    both, row = evidence.store.read(LINKS).to_dicts()
    assert (both["errors"], both["drops"]) == (180, 60)
    assert (row["symbol_errors"], row["rx_bytes"], row["trouble"]) == (63, 61 * GB, "errors")
    assert (row["errors"], row["drops"], row["link_downs"]) == (None, None, None)


def test_two_interfaces_are_two_rows_and_one_never_connected_has_no_trouble(evidence, port):
    port([{"is_up": True, "rx_drops": 0}] * 3, device="eth0", kind="ethernet", port="")
    port([{"is_up": False, "rx_drops": 0}] * 3, device='<b>eth"1</b>', kind="ethernet", port="")
    evidence.store.build()

    found = evidence.store.read(LINKS)
    assert found.select("device", "trouble", "is_up", "down_ratio").rows() == [
        ('<b>eth"1</b>', None, False, 1.0),
        ("eth0", None, True, 0.0),
    ]


def test_a_lost_link_is_an_event_from_the_reading_that_shows_it_to_the_one_that_ends_it(
    evidence, port
):
    port([{"is_up": up, "link_downs": down} for up, down in
          [(True, 0), (True, 0), (False, 1), (False, 1), (True, 1)]])  # fmt: skip
    evidence.store.build()

    (row,) = evidence.store.read(LINKS).to_dicts()
    (event,) = evidence.store.read(EVENTS).to_dicts()
    assert (row["trouble"], row["link_downs"], row["down_ratio"]) == ("lost", 1, pytest.approx(0.4))
    assert (event["after_at"], event["start_at"], event["end_at"], event["is_seen_down"]) == (
        evidence.at(60),
        evidence.at(120),
        evidence.at(240),
        True,
    )


def test_a_link_that_was_down_between_two_readings_shows_by_its_counter(evidence, port):
    port([{"is_up": True, "link_downs": 4}, {"is_up": True, "link_downs": 6}])
    evidence.store.build()

    (event,) = evidence.store.read(EVENTS).to_dicts()
    assert (event["start_at"], event["is_seen_down"]) == (evidence.at(60), False)
    assert evidence.store.read(LINKS)["link_downs"].to_list() == [2]


def test_the_runs_that_held_the_node_then_are_hit_and_no_others(evidence, port):
    evidence.node("b", 8)
    evidence.job("before", 0, 60, ["a"], 8)
    evidence.job("hit", 61, 600, ["a"], 8)
    evidence.job("elsewhere", 61, 600, ["b"], 8)
    port([{"is_up": up} for up in (True, True, True, False, False)])
    evidence.store.build()

    found = evidence.store.read("select run_id, gpus, end_at from marts.link_event_runs")
    assert found.rows() == [("hit", 8, None)]


def test_hosts_that_are_no_nodes_of_the_fleet_are_left_out(evidence, port):
    port([{"is_up": True}, {"is_up": False}], node="login")
    evidence.store.build()

    assert evidence.store.read(LINKS).is_empty()


def test_retransmits_are_counted_over_the_hours_of_the_window(evidence, host):
    host([{"memory_total_bytes": 1, "tcp_sent_segments": 1000 * n,
           "tcp_retransmitted_segments": 5 * n} for n in range(90)])  # fmt: skip
    evidence.store.build()

    (row,) = evidence.store.read("select * from marts.tcp_retransmits").to_dicts()
    assert (row["sent_segments"], row["retransmitted_segments"]) == (89_000, 445)
    assert row["retransmit_ratio"] == 0.005


def test_readings_that_come_later_are_counted_as_if_all_had_come_at_once(evidence, port):
    """Two builds, the second with readings of the first hour too, then a full one."""
    port([{"symbol_errors": 2 * n} for n in range(40)])
    evidence.store.build()
    port([{"symbol_errors": 2 * n} for n in range(40, 90)], first_s=40 * 60)
    evidence.store.build()
    later = evidence.store.read(LINKS)
    evidence.store.build(is_full=True)

    assert later["symbol_errors"].to_list() == [178]
    assert evidence.store.read(LINKS).equals(later)
