"""An emitter that finds nothing of the job, of Slurm or of torchrun in which the tests may run."""

import os

import pytest

import goodput_emitter


@pytest.fixture(autouse=True)
def no_job_environment(monkeypatch):
    found = (*goodput_emitter.RANKS, *goodput_emitter.LOCAL_RANKS, *goodput_emitter.SIZES)
    for name in (*found, *(n for n in os.environ if n.startswith(("SLURM_", "TORCHELASTIC_")))):
        monkeypatch.delenv(name, raising=False)
    for name in ("RUN_ID", "GROUP_WORLD_SIZE", "JOB_EVENTS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(goodput_emitter, "_current", None)
    monkeypatch.setattr(goodput_emitter, "_lives", {})
    monkeypatch.setattr(goodput_emitter, "_seconds", {})
    monkeypatch.setattr(goodput_emitter, "_has_lived", os.getpid())  # the tests' own process
