"""Whose series it is by its labels: GPU, node, instance, pod and job."""

import polars as pl
import pytest

from goodput_ingest.gpu_metrics import labels

AMD_WHOLE = {
    "gpu_uuid": "88ff", "serial_number": "N/A", "card_model": "N/A",
    "card_series": "AMD Instinct MI210",
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
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
        ({"serial_number": "N/A", "gpu_id": "0"}, {"gpu_uuid": None}),
        ({"hostname": "n1", "instance": "10.0.0.1:9400"}, {"node": "n1"}),
        ({"Hostname": "localhost", "instance": "n1:9400"}, {"node": "n1"}),
        ({"Hostname": "exp-x", "pod": "exp-x", "node": "n1"}, {"node": "n1"}),
        ({"instance": "n1:9400"}, {"node": "n1"}),
        ({"instance": "localhost:9400"}, {"node": "given"}),
        ({"model_name": "H100"}, {"gpu_model": "H100"}),
        ({"DCGM_FI_SYSTEM_DRIVER_VERSION": "570"}, {"driver_version": "570"}),
        ({"DCGM_FI_DEV_VBIOS_VERSION": "96.00"}, {"vbios_version": "96.00"}),
        ({"gpu": "x"}, {"gpu_index": None}),
        ({"gpu_partition_id": "0", "gpu_compute_partition_type": "spx"}, {"gpu_instance": ""}),
        ({"gpu_partition_id": "1", "gpu_compute_partition_type": "cpx"}, {"gpu_instance": "1"}),
        ({"pod": "", "namespace": "", "container": ""}, {"pod": None, "container": None}),
        (
            {"exported_pod": "p", "exported_namespace": "ns", "pod": "exp", "namespace": "mon"},
            {"pod": "ns/p"},
        ),
        ({"pod": "exp", "namespace": "mon", "container": "nvidia-dcgm-exporter"}, {"pod": None}),
        ({"job": "dcgm"}, {"hpc_job": None}),
        ({"UUID": "GPU-\x1b[2J"}, {"gpu_uuid": "GPU-\ufffd[2J"}),
        *(
            (
                {**AMD_WHOLE, "gpu_compute_partition_type": text, "gpu_partition_id": text},
                {
                    "gpu_uuid": "88ff",
                    "gpu_instance": "",
                    "is_other_partition": False,
                    "gpu_model": "AMD Instinct MI210",
                },
            )
            for text in ("none", "N/A", "NA", "", "[N/A]")
        ),
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
