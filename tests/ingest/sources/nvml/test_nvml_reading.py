"""Reading one GPU through NVML, from drivers and GPUs of all kinds."""

from unittest.mock import Mock

import pytest
from tests.ingest import fake_nvml
from tests.ingest.fake_nvml import FakeGpu, FakeInstance, FakeNvml
from tests.tables import each, gives

from goodput_ingest.sources.nvml.gpu import Gpu
from goodput_ingest.sources.nvml.library import DriverGoneError, GpuGoneError, Nvml
from goodput_ingest.sources.nvml.xids import XIDS_MAX


def opened(gpu, *without, **options):
    return Gpu(Nvml(FakeNvml(gpu).without(*without)), 0, **options)


def test_a_reading_has_what_the_recording_format_names():
    gpu = opened(FakeGpu())

    (line,) = gpu.fast(1.0, 1.0)

    assert line == {
        "kind": "fast", "t": 1.0, "gpu": 0, "util_gpu_pct": 97, "util_mem_pct": 30, "mem_used": 500,
        "power_mw": 690_500, "energy_mj": 2_000, "mem_temp_c": 60, "sm_mhz": 1980, "mem_mhz": 3201,
        "event_reasons": 4, "temp_c": 55,
    }  # fmt: skip


def test_a_slow_reading_has_counters_links_and_processes():
    gpu = opened(FakeGpu(processes=[(940, 14_680_064), (941, None)]))

    line = gpu.slow(2.0)

    assert line["viol_power_ns"] == 5_000_000_000
    assert line["remapped_rows"] == [1, 2, 0, 1]
    assert line["links"] == {"tx_kib": [100, 101], "rx_kib": [100, 101]}
    assert line["procs"] == [[940, 14_680_064], [941, None]]
    assert "viol_thermal_ns" not in line


test_an_older_name_is_used_where_the_newer_is_not_in_the_package = gives(
    lambda missing, name: opened(FakeGpu(), f"nvmlDeviceGet{missing}").fast(1.0, 1.0)[0][name],
    ("CurrentClocksEventReasons", "event_reasons", 4), ("TemperatureV", "temp_c", 55),
    ("FieldValues", "power_mw", 690_400), ("FieldValues", "energy_mj", 2_000),
)  # fmt: skip


@pytest.mark.parametrize("code", [13, 25, 26, 3])
def test_an_older_name_is_used_where_the_driver_does_not_know_the_newer(code):
    fake = FakeGpu(errors={"nvmlDeviceGetTemperatureV": code})
    gpu = opened(fake)

    lines = [gpu.fast(second, second)[0] for second in range(3)]

    assert [line["temp_c"] for line in lines] == [55, 55, 55]
    assert fake.asked.count("nvmlDeviceGetTemperatureV") == 1
    assert "temp_c" not in gpu.without()


def test_memory_is_asked_without_a_version_where_the_function_takes_none():
    module = FakeNvml(FakeGpu())
    newer = module.nvmlDeviceGetMemoryInfo
    module.nvmlDeviceGetMemoryInfo = lambda handle: newer(handle)  # noqa: PLW0108 -- no version
    assert Gpu(Nvml(module), 0).fast(1.0, 1.0)[0]["mem_used"] == 600


def test_a_mismatch_of_package_and_driver_leaves_the_call_for_the_versioned_one():
    module = FakeNvml(FakeGpu(processes=[(7, None)])).without(f"{fake_nvml.PROCESSES}_v3")
    mismatch = Mock(side_effect=fake_nvml.NVMLLibraryMismatchError)
    module.nvmlDeviceGetComputeRunningProcesses = mismatch

    gpu = Gpu(Nvml(module), 0)

    assert "procs" not in gpu.slow(1.0)
    assert gpu.without()["procs"] == "another version of the call"


def test_what_a_gpu_does_not_support_is_asked_once_and_then_left():
    fake = FakeGpu(errors={"nvmlDeviceGetTotalEccErrors": 3, 82: 3, "nvmlDeviceGetRemappedRows": 4})
    gpu = opened(fake)

    for second in range(3):
        gpu.fast(second, second)
        gpu.slow(second)

    assert [fake.asked.count(what) for what in (82, "nvmlDeviceGetRemappedRows")] == [1, 1]
    assert gpu.without().items() >= {
        "mem_temp_c": "not supported", "remapped_rows": "no permission",
        "ecc_corrected": "not supported",
    }.items()  # fmt: skip


def test_an_error_that_may_pass_is_asked_again():
    fake = FakeGpu(errors={"nvmlDeviceGetUtilizationRates": fake_nvml.UNKNOWN})
    gpu = opened(fake)
    (first,) = gpu.fast(1.0, 1.0)
    fake.errors.clear()

    (second,) = gpu.fast(2.0, 2.0)

    assert "util_gpu_pct" not in first
    assert second["util_gpu_pct"] == 97
    assert gpu.without().keys().isdisjoint({"util_gpu_pct"})


@pytest.mark.parametrize("where", ["nvmlDeviceGetUtilizationRates", 83])
def test_a_lost_gpu_is_reported_whether_a_call_or_a_field_says_so(where):
    fake = FakeGpu()
    gpu = opened(fake)
    fake.errors[where] = fake_nvml.GPU_IS_LOST

    with pytest.raises(GpuGoneError):
        gpu.fast(1.0, 1.0)


def test_processes_are_unknown_without_permission_and_none_when_there_are_none():
    denied = dict.fromkeys((f"{fake_nvml.PROCESSES}_v3", fake_nvml.PROCESSES), 4)
    assert opened(FakeGpu()).slow(1.0)["procs"] == []
    assert "procs" not in opened(FakeGpu(errors=denied)).slow(1.0)


def test_in_a_container_an_empty_list_of_processes_says_nothing():
    """The driver hides processes of other PID namespaces: none seen is not none there."""
    fake = FakeGpu()
    gpu = opened(fake, sees_all_processes=False)
    empty = gpu.slow(1.0)
    fake.processes.append((7, None))

    assert "procs" not in empty
    assert gpu.slow(2.0)["procs"] == [[7, None]]


def test_gpm_is_the_time_between_two_readings_of_ours():
    """Snapshots less than a tenth of a second apart are not compared."""
    gpu = opened(FakeGpu(gpm_values={2: 81.25}))

    first, second, near, later = (
        gpu.fast(wall_s, steady_s)[0]
        for wall_s, steady_s in ((10.0, 100.0), (11.0, 101.5), (11.05, 101.55), (11.2, 101.7))
    )

    assert "gpm" not in first
    assert (second["gpm"]["sm_active_pct"], second["gpm_window_ms"]) == (81.25, 1500.0)
    assert "gpm" not in near
    assert later["gpm_window_ms"] == pytest.approx(200.0)


@each(({10: 21}, {}), ({10: fake_nvml.UNKNOWN}, {}), ({}, {10: float("nan")}))
def test_a_share_that_nvml_could_not_give_is_missing_and_one_never_there_is_named(codes, values):
    gpu = opened(FakeGpu(gpm_codes=codes | {11: 3}, gpm_values=values))
    gpu.fast(1.0, 1.0)

    (line,) = gpu.fast(2.0, 2.0)

    assert line["gpm"]["dram_bw_pct"] is None
    assert line["gpm_without"] == ["fp64_pct"]
    assert "fp64_pct" not in line["gpm"]


def test_after_a_failed_snapshot_the_next_one_restarts():
    fake = FakeGpu()
    gpu = opened(fake)
    gpu.fast(1.0, 1.0)
    fake.errors["nvmlGpmSampleGet"] = fake_nvml.UNKNOWN
    (failed,) = gpu.fast(2.0, 2.0)
    fake.errors.clear()

    (again,) = gpu.fast(3.0, 3.0)
    (later,) = gpu.fast(4.0, 4.0)

    assert failed["gpm"] == {}
    assert "gpm" not in again
    assert later["gpm_window_ms"] == 1000.0


def mig_gpu():
    first = FakeInstance(gi=1, used=1_000)
    shared = FakeInstance(gi=1, name="NVIDIA H200 MIG 1c.3g.71gb")
    unnamed = FakeInstance(gi=5, name="NVIDIA H200", slices=1, memory_mib=18_432, used=2_000)
    return FakeGpu(mig=1, instances=[first, shared, unnamed])


def test_mig_instances_are_named_with_profile_slices_and_memory():
    assert opened(mig_gpu()).meta()["instances"] == [
        {"gi": 1, "profile": "3g.71gb", "slices": 3, "mem_total": 71_680 * 2**20},
        {"gi": 5, "profile": "1g.18gb", "slices": 1, "mem_total": 18_432 * 2**20},
    ]


def test_a_mig_instance_has_memory_and_gpm_of_its_own_and_repeats_the_rest():
    gpu = opened(mig_gpu())
    gpu.fast(1.0, 1.0)

    lines = gpu.fast(2.0, 2.0)

    assert [(line["gi"], line["mem_used"]) for line in lines] == [(1, 1_000), (5, 2_000)]
    assert [line["gpm"]["sm_active_pct"] for line in lines] == [11.0, 15.0]
    assert [line["power_mw"] for line in lines] == [690_500, 690_500]


def test_xids_come_in_order_with_their_instance():
    gpu = opened(FakeGpu(xids=[(63, 0xFFFFFFFF), (94, 3)]))

    assert gpu.events(5.0) == [
        {"kind": "event", "t": 5.0, "gpu": 0, "event": "xid", "xid": 63},
        {"kind": "event", "t": 5.0, "gpu": 0, "event": "xid", "xid": 94, "gi": 3},
    ]
    assert gpu.events(6.0) == []


def test_a_storm_of_xids_does_not_hold_up_a_reading():
    gpu = opened(FakeGpu(xids=[(31, 0xFFFFFFFF)] * (XIDS_MAX + 5)))
    assert [len(gpu.events(1.0)), len(gpu.events(2.0))] == [XIDS_MAX, 5]


@each(
    (FakeGpu(answers={"nvmlDeviceGetSupportedEventTypes": 0}), "not supported"),
    (FakeGpu(errors={"nvmlDeviceRegisterEvents": 3}), "not supported"),
    (FakeGpu(errors={"nvmlDeviceRegisterEvents": 4}), "no permission"),
    (FakeGpu(errors={"nvmlEventSetWait": fake_nvml.UNKNOWN}), "Unknown Error"),
)
def test_where_xids_cannot_be_heard_the_reason_is_reported(gpu, why):
    opened_gpu = opened(gpu)
    assert opened_gpu.events(1.0) == []
    assert opened_gpu.without()["xids"] == why


@each((1, None), (9, None), (12, None), (fake_nvml.VERSION_MISMATCH, "restart this collector"))
def test_a_driver_that_is_away_or_was_updated_is_reported_at_opening(code, said):
    with pytest.raises(DriverGoneError, match=said):
        Nvml(FakeNvml(init_error=code)).open()
