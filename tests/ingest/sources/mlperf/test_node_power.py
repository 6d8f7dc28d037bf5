import json

import pytest

from goodput_queries.errors import IngestError

START_MS = 1_715_341_080_000
NETWORK_MS = 1_652_749_794_206 - START_MS  # years away from the run


def line(key, time_ms, value=None):
    """Return a line; `time_ms` counts from START_MS."""
    event = {"namespace": "", "time_ms": START_MS + time_ms, "key": key, "value": value}
    return f":::MLLOG {json.dumps(event | {'metadata': ''})}\n"


SERIES = (
    line("power_measurement_start", 1_000)
    + line("power_reading", 3_000, 2090)
    + line("power_reading", 5_000, 0)
    + line("power_measurement_stop", 5_000)
)


FOLDER = "ac/results/sys/bert/power/result_0"


def readings(store):
    return store.read(
        "select node, epoch_ms(ts) - $1, power_w from raw.node_samples order by all", [START_MS]
    ).rows()


def test_readings_belong_to_the_run_whose_folder_they_lie_in(store, read_text):
    """The start has no reading of its own; at the stop stands the last one, zero watts included."""
    read_text("auto", SERIES, f"{FOLDER}/node_1.txt")

    node = "ac/sys/bert/result_0/node_1"
    assert readings(store) == [(node, 1_000, None), (node, 3_000, 2090.0), (node, 5_000, 0.0)]


def test_the_networks_estimate_keeps_its_own_time_and_the_folders_name(store, read_text):
    text = line("interconnect_power_est", NETWORK_MS, 59570)

    read_text("auto", text, f"{FOLDER}/sw_0.txt")

    assert readings(store) == [("ac/sys/bert/result_0/sw_0", NETWORK_MS, 59570.0)]


def test_outside_a_submission_the_node_has_to_be_given(store, read_text):
    with pytest.raises(IngestError, match="--node"):
        read_text("node-power", SERIES)
    read_text("node-power", SERIES, node="node001")

    assert {node for node, _, _ in readings(store)} == {"node001"}
