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


def test_a_gpu_whose_node_nobody_says_has_readings_but_no_place():
    lines = [("nvidia_smi_power_draw_watts", {"uuid": "GPU-a"}, 0, 70)]

    assert "gpus" not in rows(lines)
    assert rows(lines)["gpu_samples"][0]["power_w"] == 70.0
    assert rows(lines, node="n1")["gpus"][0]["node"] == "n1"
