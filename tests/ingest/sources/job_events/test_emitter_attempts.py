"""Attempts are numbered where all ranks find the same number, and each life another one."""

import json
import os

import pytest
from tests.tables import each

import goodput_emitter
from goodput_emitter import Emitter

SRUN = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_TASK_PID": str(os.getpid())}
TORCHRUN = {
    "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_TASK_PID": str(os.getppid()),
    "TORCHELASTIC_RUN_ID": "7", "TORCHELASTIC_RESTART_COUNT": "1", "GROUP_WORLD_SIZE": "2",
    "TORCHELASTIC_MAX_RESTARTS": "0", "WORLD_SIZE": "16",
}  # fmt: skip
ONE_NODE = {"SLURM_STEP_NUM_TASKS": "1", "GROUP_WORLD_SIZE": "1", "TORCHELASTIC_MAX_RESTARTS": "3"}


def attempts_of(path):
    events = map(json.loads, path.read_text().splitlines())
    return [event.get("attempt") for event in events if event["event"] == "job.start"]


@each({
    "srun": (SRUN, 0),
    "requeued, fourth srun": (SRUN | {"SLURM_STEP_ID": "3", "SLURM_RESTART_COUNT": "2"}, 20_300),
    "ranks are tasks": (SRUN | {"WORLD_SIZE": "2", "RANK": "1"}, 0),
    "torchrun": (TORCHRUN, 0),
    "torchrun on one node": (TORCHRUN | ONE_NODE, 1),
})  # fmt: skip
def test_ranks_of_srun_number_their_attempt_alike(tmp_path, monkeypatch, environment, expected):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setattr(goodput_emitter, "_lives", {})
        Emitter("run7", tmp_path / "e.jsonl").begin()

    assert attempts_of(tmp_path / "e.jsonl") == [expected] * 2


@each({
    "a shell in the step": (SRUN | {"SLURM_TASK_PID": "1"}, None),
    "another launcher": (SRUN | {"WORLD_SIZE": "16"}, None),
    "no number": (SRUN | {"SLURM_STEP_ID": "x"}, None),
    "agents that restart": (TORCHRUN | {"TORCHELASTIC_MAX_RESTARTS": "3"}, None),
    "several steps": (TORCHRUN | {"GROUP_WORLD_SIZE": "4"}, None),
    "torchrun alone": ({"TORCHELASTIC_RUN_ID": "7", "WORLD_SIZE": "1"}, None),
    "MPI": ({"OMPI_COMM_WORLD_SIZE": "8"}, None),
    "the program": ({}, 3),
})  # fmt: skip
def test_attempts_that_ranks_may_number_apart_have_none(tmp_path, monkeypatch, environment, rank):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    Emitter("run7", tmp_path / "e.jsonl", rank=rank).begin()

    assert attempts_of(tmp_path / "e.jsonl") == [None]


@pytest.mark.parametrize("environment", [{}, SRUN])
def test_each_life_of_a_process_has_a_higher_number(tmp_path, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    for path in ("a.jsonl", "a.jsonl", "b.jsonl"):
        with goodput_emitter.run("run7", tmp_path / path):
            pass

    first, second = attempts_of(tmp_path / "a.jsonl")
    (third,) = attempts_of(tmp_path / "b.jsonl")
    assert 0 <= first < second < third < 2**31


def test_a_process_keeps_numbering_where_it_starts_further_ranks(tmp_path, monkeypatch):
    """Lightning starts ranks from the first one, and sets their number in its environment."""
    with goodput_emitter.run("run7", tmp_path / "e.jsonl"):
        monkeypatch.setenv("WORLD_SIZE", "8")
    with goodput_emitter.run("run7", tmp_path / "e.jsonl"):
        pass

    first, second = attempts_of(tmp_path / "e.jsonl")
    assert first < second


def test_a_number_that_the_job_gives_is_kept(tmp_path):
    for _ in range(2):
        with goodput_emitter.run("run7", tmp_path / "e.jsonl", attempt=4):
            pass
    assert attempts_of(tmp_path / "e.jsonl") == [4, 4]
