"""Energy counters of GPUs, for tests of statements."""


def counter(evidence, gpu, readings):
    """Load a GPU's energy counter: joules by second."""
    evidence.load(
        "gpu_samples",
        [
            {"gpu_uuid": gpu, "gpu_instance": "", "ts": evidence.at(second), "energy_j": joules,
             "engine_active_ratio": 0.5, "is_flagged": False}
            for second, joules in readings
        ],
        "dcgm",
    )  # fmt: skip


def steady(until, watts, every=60):
    """Return readings of a counter that rises evenly."""
    return [(second, 1e6 + watts * second) for second in range(0, until + 1, every)]
