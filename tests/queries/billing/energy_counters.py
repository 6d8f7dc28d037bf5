"""Energy counters of GPUs, for tests of statements."""


def counter(evidence, gpu, readings):
    """Load a GPU's energy counter: joules by second."""
    evidence.add(
        "gpu_samples", *({"ts": second, "energy_j": joules} for second, joules in readings),
        source="dcgm", gpu_uuid=gpu, gpu_instance="", engine_active_ratio=0.5, is_flagged=False,
    )  # fmt: skip


def steady(until, watts, every=60):
    """Return readings of a counter that rises evenly."""
    return [(second, 1e6 + watts * second) for second in range(0, until + 1, every)]
