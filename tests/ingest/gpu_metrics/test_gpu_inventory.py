"""GPUs in series become rows when they are new or one of their facts changes."""

from datetime import timedelta

from tests.ingest.gpu_lines import GPU, START, rows

from goodput_ingest.gpu_metrics import Memory


def test_a_gpu_is_reported_when_it_is_new_or_something_about_it_changes():
    power, memory = "DCGM_FI_DEV_POWER_USAGE", Memory()
    moved = {**GPU, "Hostname": "n2"}

    reported = [
        rows([(power, gpu, seconds, 600)], memory).get("gpus", [])
        for seconds, gpu in enumerate((GPU, GPU, moved, moved))
    ]

    assert [[row["node"] for row in one] for one in reported] == [["n1"], [], ["n2"], []]
    assert reported[2][0]["valid_from_at"] == START + timedelta(seconds=2)


def test_facts_of_a_gpu_come_from_labels_and_values():
    lines = [
        ("DCGM_FI_DEV_FB_TOTAL", {**GPU, "pci_bus_id": "00000000:19:00.0"}, 0, 81559),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", GPU, 0, 700),
    ]

    (gpu,) = rows(lines)["gpus"]

    assert (gpu["node"], gpu["gpu_index"], gpu["gpu_model"]) == ("n1", 0, "H100")
    assert (gpu["pci_bus_id"], gpu["power_limit_w"]) == ("00000000:19:00.0", 700.0)
    assert gpu["memory_bytes"] == 81559 * 2**20


def test_a_gpu_whose_node_nobody_says_has_readings_but_no_place():
    lines = [("nvidia_smi_power_draw_watts", {"uuid": "GPU-a"}, 0, 70)]

    assert "gpus" not in rows(lines)
    assert rows(lines)["gpu_samples"][0]["power_w"] == 70.0
    assert rows(lines, node="n1")["gpus"][0]["node"] == "n1"


def test_a_number_of_processes_that_cannot_be_is_no_row():
    lines = [
        ("nvidia_smi_compute_apps", GPU, second, count) for second, count in ((0, 3), (1, 2.5e11))
    ]

    assert [row["processes"] for row in rows(lines)["gpu_processes"]] == [3]
