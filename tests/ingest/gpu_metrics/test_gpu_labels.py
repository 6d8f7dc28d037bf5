"""Whose series it is by its labels, and copies, instances and parts of one GPU."""

import polars as pl
import pytest
from tests.ingest.gpu_lines import GPU, START, mig, other, rows

from goodput_ingest.gpu_metrics import gpu_rows, labels

# labels


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"UUID": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"gpu_uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        ({"UUID": "", "gpu_uuid": "GPU-a"}, {"gpu_uuid": "GPU-a"}),
        (
            {"uuid": "6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"},  # the nvidia-smi exporter
            {"gpu_uuid": "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"},
        ),
        (
            {"GPU_UUID": "6699c0a8-4200-4242-037f-f97e6cae0f09"},  # AMD
            {"gpu_uuid": "6699c0a8-4200-4242-037f-f97e6cae0f09"},
        ),
        ({"SERIAL_NUMBER": "6922"}, {"gpu_uuid": "SN-6922"}),
        ({"serial_number": "PCB1", "gpu_id": "0"}, {"gpu_uuid": "SN-PCB1"}),
        ({"serial_number": "N/A", "gpu_id": "0"}, {"gpu_uuid": None}),
        ({"Hostname": "n1"}, {"node": "n1"}),
        ({"hostname": "n1", "instance": "10.0.0.1:9400"}, {"node": "n1"}),
        ({"Hostname": "localhost", "instance": "n1:9400"}, {"node": "n1"}),
        ({"Hostname": "exp-x", "pod": "exp-x", "node": "n1"}, {"node": "n1"}),
        ({"instance": "n1:9400"}, {"node": "n1"}),
        ({"instance": "localhost:9400"}, {"node": "given"}),
        ({"pci_bus_id": "00000000:9B:00.0"}, {"pci_bus_id": "00000000:9b:00.0"}),
        ({"modelName": "H100"}, {"gpu_model": "H100"}),
        ({"model_name": "H100"}, {"gpu_model": "H100"}),
        ({"DCGM_FI_DRIVER_VERSION": "570"}, {"driver_version": "570"}),
        ({"DCGM_FI_SYSTEM_DRIVER_VERSION": "570"}, {"driver_version": "570"}),
        ({"DCGM_FI_DEV_VBIOS_VERSION": "96.00"}, {"vbios_version": "96.00"}),
        ({"gpu": "3"}, {"gpu_index": 3}),
        ({"gpu": "x"}, {"gpu_index": None}),
        ({"GPU_I_ID": "2", "GPU_I_PROFILE": "3g.40gb"}, {"gpu_instance": "2"}),
        ({"gpu_partition_id": "0", "gpu_compute_partition_type": "spx"}, {"gpu_instance": ""}),
        ({"gpu_partition_id": "1", "gpu_compute_partition_type": "cpx"}, {"gpu_instance": "1"}),
        ({"pod": "p", "namespace": "ns"}, {"pod": "ns/p"}),
        ({"pod_name": "p", "pod_namespace": "ns"}, {"pod": "ns/p"}),  # 1.x
        ({"pod": "", "namespace": "", "container": ""}, {"pod": None, "container": None}),
        (
            {"exported_pod": "p", "exported_namespace": "ns", "pod": "exp", "namespace": "mon"},
            {"pod": "ns/p"},
        ),
        ({"pod": "exp", "namespace": "mon", "container": "nvidia-dcgm-exporter"}, {"pod": None}),
        ({"hpc_job": "4815"}, {"hpc_job": "4815"}),
        ({"job": "dcgm"}, {"hpc_job": None}),
        ({"nvlink": "3", "gpu_uuid": "GPU-a"}, {"part": 'nvlink="3"'}),
        ({"UUID": "GPU-\x1b[2J"}, {"gpu_uuid": "GPU-\ufffd[2J"}),
        ({"pod": "p" * 9999}, {"pod": "p" * labels.TEXT_MAX_CHARS}),
    ],
)
def test_labels_in_every_spelling(given, expected):
    frame = pl.DataFrame({name: [value] for name, value in given.items()})

    (row,) = labels.normalise(frame, node="given").rows(named=True)

    assert {name: row[name] for name in expected} == expected


def test_where_prometheus_renamed_once_plain_pods_are_the_exporters_in_the_whole_job():
    frame = pl.DataFrame(
        {
            "job": ["dcgm", "dcgm", "other"],
            "pod": ["exp-1", "exp-2", "train-0"],
            "exported_pod": ["llm-0", None, None],
        }
    )

    assert labels.normalise(frame)["pod"].to_list() == ["llm-0", None, "train-0"]


# copies, instances, parts


def test_a_series_copied_for_each_job_is_one_reading():
    power = "DCGM_FI_DEV_POWER_USAGE"

    found = rows([(power, {**GPU, "hpc_job": str(job)}, 0, 600) for job in (1, 2, 3)])

    assert [row["power_w"] for row in found["gpu_samples"]] == [600.0]
    assert {row["owner"] for row in found["gpu_owners"]} == {"1", "2", "3"}


def test_the_device_series_beside_shares_of_its_pods_is_what_counts():
    util = "DCGM_FI_DEV_GPU_UTIL"
    of_pods = [(util, {**GPU, "pod": pod}, 0, value) for pod, value in (("a", 30), ("b", 20))]

    found = rows([(util, GPU, 0, 50), *of_pods])

    assert [row["gpu_busy_ratio"] for row in found["gpu_samples"]] == [0.5]


def test_whole_gpu_readings_that_repeat_on_mig_instances_are_one():
    energy = mig("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", dict.fromkeys("1234", 9000))
    active = mig("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {"1": 0.5, "2": 0.0, "3": 0.25, "4": 1.0})

    found = rows([*energy, *active])["gpu_samples"]

    assert {r["gpu_instance"]: r["energy_j"] for r in found if r["energy_j"]} == {"": 9.0}
    assert {r["gpu_instance"]: r["engine_active_ratio"] for r in found if r["gpu_instance"]} == {
        "1": 0.5, "2": 0.0, "3": 0.25, "4": 1.0,
    }  # fmt: skip


def test_gpu_util_of_a_mig_instance_is_not_zero_but_not_measured():
    lines = [
        *mig("DCGM_FI_DEV_GPU_UTIL", {"1": 0}),
        *mig("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {"1": 0.5}),
    ]

    (row,) = rows(lines)["gpu_samples"]

    assert row.get("gpu_busy_ratio") is None
    assert row["engine_active_ratio"] == 0.5


def test_of_amd_partitions_only_the_first_has_sensors():
    amd = {"gpu_uuid": "a", "hostname": "n1", "gpu_compute_partition_type": "cpx"}
    lines = [
        ("gpu_package_power", {**amd, "gpu_partition_id": "0"}, 0, 500),
        ("gpu_package_power", {**amd, "gpu_partition_id": "1"}, 0, 999),
        ("gpu_prof_sm_active", {**amd, "gpu_partition_id": "1"}, 0, 40),
    ]

    found = rows(lines)["gpu_samples"]

    assert {r["gpu_instance"]: r.get("power_w") for r in found} == {"": 500.0, "1": None}
    assert {r["gpu_instance"]: r["sm_active_ratio"] for r in found} == {"": None, "1": 0.4}


def test_a_clock_of_amd_goes_by_its_type():
    lines = [
        ("gpu_clock", {**GPU, "clock_type": f"GPU_CLOCK_TYPE_{kind}", "clock_index": "0"}, 0, mhz)
        for kind, mhz in (("SYSTEM", 2100), ("MEMORY", 1300), ("VIDEO", 900))
    ]

    (row,) = rows(lines)["gpu_samples"]

    assert (row["sm_clock_hz"], row["memory_clock_hz"]) == (2.1e9, 1.3e9)
    assert other(lines) == {
        ("", 'gpu_clock{clock_index="0",clock_type="GPU_CLOCK_TYPE_VIDEO"}'): 900.0
    }


def test_one_link_of_many_is_not_the_gpus_traffic():
    name = "DCGM_FI_PROF_NVLINK_TX_BYTES"

    found = other([(name, {**GPU, "nvlink": str(link)}, 0, link) for link in (0, 1)])

    assert found == {
        ("", 'nvlink_tx_bytes_per_s{nvlink="0"}'): 0.0,
        ("", 'nvlink_tx_bytes_per_s{nvlink="1"}'): 1.0,
    }


def test_clock_events_of_a_window_are_kept_apart_by_event():
    name = "DCGM_EXP_CLOCK_EVENTS_COUNT"
    lines = [(name, {**GPU, "clock_event": e}, 0.0, 3.0) for e in ("power_cap", "hw_thermal")]

    assert set(other(lines)) == {
        ("", 'clock_events_in_window{clock_event="power_cap"}'),
        ("", 'clock_events_in_window{clock_event="hw_thermal"}'),
    }


def test_a_series_of_no_gpu_is_named_but_the_exporters_own_are_not():
    sets = labels.normalise(pl.DataFrame({"gpu": [None, None]}, schema={"gpu": pl.String}))
    series = pl.DataFrame({"metric": ["gpu_nodes_total", "go_threads"], "labels": [0, 1]})
    points = pl.DataFrame({"series": [0, 1], "ts": [START, START], "value": [1.0, 1.0]})

    (parsed,) = gpu_rows(points, series, sets, source="test")

    assert parsed.rows.is_empty()
    assert [reject.content for reject in parsed.rejects] == ["gpu_nodes_total"]
