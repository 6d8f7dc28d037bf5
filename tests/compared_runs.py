"""Runs of one job on two GPUs each, for comparisons: `old`, `new`, `same`, `hot`.

`new` is 6 % slower and has another commit and driver; `hot` is slower and throttled.
"""

import json

import numpy as np
from tests.queries.conftest import Evidence

NAME = "<b>|x\x1b[31m"
H100 = "NVIDIA H100 80GB HBM3"
STEP_S = {"old": 2.0, "new": 2.12, "same": 2.0, "hot": 2.2}
STEPS = 120
APART_S = 1000


def load(evidence):
    """Load the runs, one after the other."""
    noise = np.random.default_rng(3).normal(1, 0.01, (len(STEP_S), STEPS))
    for place, (name, length) in enumerate(STEP_S.items()):
        begin, times = APART_S * place, length * noise[place]
        ends = begin + np.cumsum(times)
        is_new = name == "new"
        listed = {"gpu_model": H100, "driver_version": "580.2" if is_new else "580.1"}
        for gpu in range(2):
            evidence.listed(f"n{place}", f"n{place}#{gpu}", "test", gpu_index=gpu, slurm_index=gpu,
                            **listed)  # fmt: skip
        evidence.job(name, begin, float(ends[-1]), [f"n{place}"], 2, job_name=NAME)
        commit = json.dumps({"commit": "b2" if is_new else "a1"})
        events = [{"event": "job.start", "t": begin, "extra": commit}]
        events += [
            {
                "event": "step", "step": step, "t": float(end), "dur_s": float(length_s),
                "samples": 8.0, "throttle_s": 0.2 if name == "hot" else 0.0,
            }
            for step, (end, length_s) in enumerate(zip(ends, times, strict=True), 1)
        ]  # fmt: skip
        evidence.events(name, [{"extra": None, **event} for event in events], host=f"n{place}")


def built(filled):
    """Return a database with the runs, which is built once; to be copied by who writes."""

    def fill(store):
        load(Evidence(store))
        store.build()

    return filled("compared_runs", fill)
