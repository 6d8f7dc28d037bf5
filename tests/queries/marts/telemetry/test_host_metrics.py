"""Hosts and links between readings: shares of time, errors, lost links, over restarts."""

from tests.queries.conftest import at, each, shown_by

from goodput_queries.scope import Scope

INTERVALS = "select * from marts.host_intervals order by node, end_ms"
LINKS = "from marts.link_errors order by node, kind, device, port"
LOST = """select link_errors.link_downs, round(down_ratio, 6), trouble, after_at, start_at,
        is_seen_down, case when is_seen_down then end_at end
    from marts.link_errors inner join marts.link_events using (node, device)"""
GB = 10**9


def host(site, rows, node="a", *, source="node-exporter", step_s=60, **more):
    """Load readings of node `a`, a minute apart: a row of columns each."""
    read = [{"ts": step_s * number, **row} for number, row in enumerate(rows)]
    site.add("node_samples", *read, source=source, node=node, **more)


def port(cluster, rows, device="mlx5_0", kind="infiniband", port="1", node="a", first_s=0):
    """Load readings of a port of node `a`, a minute apart."""
    read = [{"ts": first_s + 60 * number, **row} for number, row in enumerate(rows)]
    cluster.add("link_samples", *read, node=node, kind=kind, device=device, port=port)


def lost(*readings):
    """Return readings of whether a link is up, and of its counter of losses."""
    return [{"is_up": up, "link_downs": down} for up, down in readings]


def cpu(busy, total, iowait=0.0, steal=0.0):
    return {"cpu_busy_s": busy, "cpu_total_s": total, "cpu_iowait_s": iowait, "cpu_steal_s": steal}


def memory(available, swap_total, swap_free):
    return {"memory_total_bytes": 100, "memory_available_bytes": available,
            "swap_total_bytes": swap_total, "swap_free_bytes": swap_free}  # fmt: skip


# what it shows: readings of the host by source and seconds between them, columns of its intervals
@each({
    "CPU time of an interval is shared out": (
        {"node-exporter": (60, [cpu(100.0, 1000.0), cpu(130.0, 1120.0, iowait=12.0, steal=6.0)])},
        {"cpu_busy_ratio": [0.25], "cpu_iowait_ratio": [0.1], "cpu_steal_ratio": [0.05]}),
    "the interval of a restart is unknown and those after it are not": (
        {"node-exporter": (60, [cpu(100.0, 1000.0), cpu(1.0, 30.0), cpu(31.0, 150.0)])},
        {"cpu_busy_ratio": [None, 0.25]}),
    "memory and swap are what is in use and no swap is not zero": (
        {"node-exporter": (60, [memory(60, 0, 0), memory(20, 50, 45), memory(30, 0, 0)])},
        {"memory_used_bytes": [80, 70], "swap_used_bytes": [5, None],
         "cpu_busy_ratio": [None, None]}),
    "of two sources the one with more readings counts": (
        {"node-exporter": (60, [cpu(0.0, 0.0), cpu(60.0, 60.0), cpu(120.0, 120.0)]),
         "nvml": (90, [cpu(0.0, 0.0), cpu(0.0, 90.0)])}, {"cpu_busy_ratio": [1.0, 1.0]}),
})  # fmt: skip
def test_intervals_of_a_host(cluster, read, expected):
    cluster.node("a", 8)
    for source, (step_s, rows) in read.items():
        host(cluster, rows, source=source, step_s=step_s)
    yield
    found = cluster.read(INTERVALS)
    assert {column: found[column].to_list() for column in expected} == expected
    assert set(found["end_ms"] - found["start_ms"]) == {60_000}


ETHERNET = {"device": "eth0", "kind": "ethernet", "port": ""}
HOSTILE = '<b>eth"1</b>'
# what it shows: what ports and hosts report, what is read of it
test_links_and_hosts = shown_by({
    # 60 symbol errors, then the counter begins again and reaches 3; received and sent add up
    "errors of a port are the increase over hours and resets": (
        lambda c: [port(c, [{"rx_errors": n, "tx_errors": 2 * n, "tx_drops": n} for n in range(61)],
                        **ETHERNET),
                   port(c, [{"symbol_errors": 100 + n, "rx_bytes": n * GB} for n in range(61)]),
                   port(c, [{"symbol_errors": 3, "rx_bytes": 61 * GB}], first_s=61 * 60)],
        f"select errors, drops, symbol_errors, rx_bytes, link_downs, trouble {LINKS}",
        [(180, 60, None, None, None, "errors"), (None, None, 63, 61 * GB, None, "errors")]),
    "two interfaces are two rows, and one never connected has no trouble": (
        lambda c: [port(c, [{"is_up": True, "rx_drops": 0}] * 3, **ETHERNET),
                   port(c, [{"is_up": False, "rx_drops": 0}] * 3,
                        **ETHERNET | {"device": HOSTILE})],
        f"select device, trouble, is_up, down_ratio {LINKS}",
        [(HOSTILE, None, False, 1.0), ("eth0", None, True, 0.0)]),
    "the runs that held the node then are hit and no others": (
        lambda c: [c.node("b", 8), c.job("before", 0, 60, ["a"], 8),
                   c.job("hit", 61, 600, ["a"], 8), c.job("elsewhere", 61, 600, ["b"], 8),
                   port(c, [{"is_up": up} for up in (True, True, True, False, False)])],
        "select run_id, gpus, end_at from marts.link_event_runs", [("hit", 8, None)]),
    "hosts that are no nodes of the fleet are left out": (
        lambda c: port(c, [{"is_up": True}, {"is_up": False}], node="login"), LINKS, []),
    "retransmits are counted over the hours of the window": (
        lambda c: host(c,
                       [{"memory_total_bytes": 1, "tcp_sent_segments": 1000 * n,
                         "tcp_retransmitted_segments": 5 * n} for n in range(90)]),
        "select sent_segments, retransmitted_segments, retransmit_ratio from marts.tcp_retransmits",
        [(89_000, 445, 0.005)]),
    "down from the reading that shows it to the one that ends it": (
        lambda c: port(c, lost((True, 0), (True, 0), (False, 1), (False, 1), (True, 1))), LOST,
        [(1, 0.4, "lost", at(60), at(120), True, at(240))]),
    "down between two readings, shown by its counter": (
        lambda c: port(c, lost((True, 4), (True, 6))), LOST,
        [(2, 0, "lost", at(0), at(60), False, None)]),
    "a name with its domain is the node that the scheduler knows": (
        lambda c: [c.node(f"gpu-{c.name}", 8), c.job("7", 0, 600, [f"gpu-{c.name}"], 8),
                   host(c, [cpu(0.0, 0.0), cpu(30.0, 60.0)], f"gpu-{c.name}.d.example",
                        cluster=None)],
        lambda c: c.read(f"select cpu_busy_ratio from ({INTERVALS})",
                         Scope(node=f"gpu-{c.name}")).rows(), [(0.5,)]),
}, before=lambda c: c.node("a", 8))  # fmt: skip


def test_readings_that_come_later_are_counted_as_if_all_had_come_at_once(cluster):
    """Two builds, the second with readings of the first hour too."""
    cluster.node("a", 8)
    read = [{"ts": 60 * n, "cpu_total_s": 60.0 * n, "cpu_busy_s": 30.0 * n} for n in range(90)]
    port(cluster, [{"symbol_errors": 2 * n} for n in range(40)])
    cluster.add("node_samples", *read[:40], source="node-exporter", node="a")
    yield
    port(cluster, [{"symbol_errors": 2 * n} for n in range(40, 90)], first_s=40 * 60)
    cluster.add("node_samples", *read[40:], source="node-exporter", node="a")
    yield
    assert cluster.read(f"select symbol_errors {LINKS}").rows() == [(178,)]
    assert cluster.read(INTERVALS)["cpu_busy_ratio"].to_list() == [0.5] * 89
