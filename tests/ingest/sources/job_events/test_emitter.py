import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.tables import each

import goodput_emitter
from goodput_emitter import Emitter
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def run_alone(script, path):
    """Run a script with a path where nothing is installed, not even site-packages."""
    folder = str(Path(goodput_emitter.__file__).parent)
    found = f"import os, sys, time; sys.path.insert(0, sys.argv[1])\n{script}"
    command = [sys.executable, "-I", "-S", "-c", found, folder, str(path)]
    subprocess.run(command, cwd=path.parent, check=True)


def train(path):
    with goodput_emitter.run("run7", path):
        with goodput_emitter.phase("restore"):
            pass
        for number in (1, 2):
            with goodput_emitter.step(number, tokens=4096) as step, step.data_wait():
                pass
        with goodput_emitter.phase("ckpt_save"):
            pass
        goodput_emitter.durable(2)


def test_the_source_reads_every_line_the_emitter_writes(store, tmp_path):
    """A run writes its life, phases, steps and durable saves."""
    train(tmp_path / "events.jsonl")

    assert [e["event"] for e in events(tmp_path / "events.jsonl")] == [
        "job.start", "phase.start", "phase.end", "step", "step",
        "phase.start", "phase.end", "ckpt.durable", "job.end",
    ]  # fmt: skip
    ingest(store, "job-events", [tmp_path / "events.jsonl"], ReadOptions(cluster="lab"))

    read = "select count(*), count(data_s), count(pid), any_value(run_id) from raw.job_events"
    assert store.read(read).row(0) == (9, 2, 9, "run7")
    assert store.read("select count(*) from raw.rejects").item() == 0


def test_what_the_job_trains_is_read_with_its_parameters_and_dtype(whole_store, tmp_path):
    with goodput_emitter.run("run7", tmp_path / "events.jsonl"):
        goodput_emitter.model(params=7e9, dtype="bf16")

    ingest(whole_store, "job-events", [tmp_path / "events.jsonl"], ReadOptions(cluster="lab"))

    models = whole_store.read("select run_id, params, dtype, is_sparse from staging.stg_job_models")
    assert models.rows() == [("run7", 7e9, "bf16", None)]


def test_what_a_run_runs_with_is_read(whole_store, tmp_path, monkeypatch):
    """Versions of a framework that the process has imported are found by themselves."""
    nccl = SimpleNamespace(version=lambda: (2, 28, 9))
    torch = SimpleNamespace(
        __version__="2.9.0", version=SimpleNamespace(cuda="13.0"), cuda=SimpleNamespace(nccl=nccl)
    )
    monkeypatch.setattr(goodput_emitter, "_gpu_uuid", lambda _: None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with goodput_emitter.run("run7", tmp_path / "events.jsonl"):
        goodput_emitter.versions("4f2a", image="train:7")

    ingest(whole_store, "job-events", [tmp_path / "events.jsonl"], ReadOptions(cluster="lab"))

    found = dict(whole_store.read("select attribute, value from staging.stg_run_attributes").rows())
    assert len(found.pop("env_hash")) == 12
    assert found == {
        "commit": "4f2a", "image": "train:7", "framework": "torch 2.9.0", "cuda_version": "13.0",
        "nccl_version": "2.28.9",
    }  # fmt: skip


def test_events_name_the_process_and_its_gpu_from_the_environment(tmp_path, monkeypatch):
    Emitter("run7", tmp_path / "unknown.jsonl").emit("job.start")
    unknown = {"gpu_uuid", "local_rank", "attempt"}
    assert not unknown & set(events(tmp_path / "unknown.jsonl")[0])
    monkeypatch.setenv("SLURM_JOB_ID", "1042")
    monkeypatch.setenv("RANK", "9")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")

    Emitter(path=tmp_path / "events.jsonl").emit("job.start")

    (event,) = events(tmp_path / "events.jsonl")
    assert {name: event[name] for name in ("run_id", "rank", "local_rank", "gpu_uuid", "pid")} == {
        "run_id": "1042", "rank": 9, "local_rank": 1, "gpu_uuid": "GPU-b", "pid": os.getpid(),
    }  # fmt: skip


def test_a_folder_gets_a_file_a_rank(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")

    Emitter("llama/7b", tmp_path).emit("job.start")

    assert [path.name for path in tmp_path.iterdir()] == ["llama_7b.rank3.jsonl"]


def test_an_exception_is_a_failure_and_goes_on_and_the_step_that_it_ends_is_not_written(tmp_path):
    emitter = Emitter("run7", tmp_path / "e.jsonl")
    with pytest.raises(MemoryError), emitter.run(), emitter.step(1):
        raise MemoryError("x" * 1000)

    started, last = events(tmp_path / "e.jsonl")
    assert started["event"] == "job.start"
    assert (last["event"], last["kind"], len(last["msg"])) == ("failure", "oom", 300)


def test_a_file_that_cannot_be_written_is_reported_once_and_fails_nothing(tmp_path, capsys):
    (tmp_path / "file").touch()

    train(tmp_path / "file" / "events.jsonl")

    assert capsys.readouterr().err.count("goodput_emitter: ") == 1


def test_a_value_that_is_no_json_fails_nothing(tmp_path):
    Emitter("run7", tmp_path / "e.jsonl").emit("metric", loss=object(), other=float("nan"))
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 1


def test_a_forked_child_writes_no_events_of_the_rank(tmp_path):
    script = (
        "import goodput_emitter\n"
        "with goodput_emitter.run('run7', sys.argv[2]):\n"
        "    if os.fork() == 0:\n"
        "        goodput_emitter.failure('other'); os._exit(0)\n"
        "    os.wait()\n"
    )

    run_alone(script, tmp_path / "e.jsonl")

    assert [e["event"] for e in events(tmp_path / "e.jsonl")] == ["job.start", "job.end"]
    assert [path.name for path in tmp_path.iterdir()] == ["e.jsonl"]


@pytest.fixture
def hf(monkeypatch, tmp_path):
    """Return a Trainer of one step, which calls the hooks of call-backs."""
    hooks = ("on_train_begin", "on_step_begin", "on_step_end", "on_train_end")
    base = type("TrainerCallback", (), dict.fromkeys(hooks, lambda *_: None))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(TrainerCallback=base))
    monkeypatch.setenv("JOB_EVENTS", str(tmp_path / "e.jsonl"))
    monkeypatch.setattr(goodput_emitter, "_current", None)

    def train(*callbacks):
        state = SimpleNamespace(global_step=1)
        for name in hooks:
            for callback in callbacks:
                getattr(callback, name)(None, state, None)

    return train


HF = ("hf",)


# what it shows: arguments of call-backs made before runs, of runs in each other, of call-backs in
@each({
    "a call-back made before a run": ([HF], [()], []),
    "made in it": ([], [HF], [HF]),
    "without a run": ([HF], [], []),
    "two in one run": ([], [HF], [HF, HF]),
    "two trainers, made first": ([HF, HF], [], []),
    "a run within a run": ([], [HF, HF], [()]),
    "another way to write the path": ([("hf", "e.jsonl")], [("hf", "x/../e.jsonl")], []),
})  # fmt: skip
def test_call_backs_and_runs_combined_are_one_life(hf, tmp_path, monkeypatch, before, runs, inside):
    monkeypatch.chdir(tmp_path)

    for _ in range(2):  # a second life of the process begins with its own start
        callbacks = [goodput_emitter.hf_callback(*made) for made in before]
        with contextlib.ExitStack() as stack:
            for of_run in runs:
                stack.enter_context(goodput_emitter.run(*of_run))
            hf(*callbacks, *(goodput_emitter.hf_callback(*made) for made in inside))

    seen = [e["event"] for e in events(tmp_path / "e.jsonl")]
    assert [event for event in seen if event != "step"] == ["job.start", "job.end"] * 2
    assert seen[1] == "step"
    assert {e["run_id"] for e in events(tmp_path / "e.jsonl")} == {"hf"}


@pytest.mark.usefixtures("hf")
def test_another_run_is_another_life(tmp_path):
    goodput_emitter.hf_callback("hf")

    with goodput_emitter.run("other"):
        pass

    assert [(e["run_id"], e["event"]) for e in events(tmp_path / "e.jsonl")] == [
        ("hf", "job.start"), ("other", "job.start"), ("other", "job.end"),
    ]  # fmt: skip


def test_a_forked_child_with_call_backs_has_a_life_of_its_own(hf, tmp_path, monkeypatch):
    """As notebook launchers start ranks from inside a run."""
    with goodput_emitter.run("hf"):
        monkeypatch.setattr(os, "getpid", lambda: -1)
        hf(goodput_emitter.hf_callback("hf"))

    seen = [(e["pid"], e["event"]) for e in events(tmp_path / "e.jsonl") if e["pid"] == -1]
    assert [event for _, event in seen] == ["job.start", "step", "job.end"]


def test_the_first_life_begins_with_the_process_and_the_next_when_it_does(tmp_path):
    script = (
        "imported = time.time()\n"
        "import goodput_emitter\n"
        "while time.time() < imported + 0.1: pass\n"
        "with goodput_emitter.run('run7', sys.argv[2]):\n"
        "    goodput_emitter.current().emit('metric', imported=imported)\n"
        "with goodput_emitter.run('run7', sys.argv[2]): pass\n"
    )

    run_alone(script, tmp_path / "e.jsonl")

    first, metric, ended, second, _ = events(tmp_path / "e.jsonl")
    assert metric["imported"] - 10 < first["ts"] <= metric["imported"]
    assert second["ts"] >= ended["ts"]


def assert_is_whole(seen):
    """Assert that a training of four steps, with two saves and evaluations, is in its events."""
    assert [e["step"] for e in seen if e["event"] == "step"] == [1, 2, 3, 4]
    assert [e["step"] for e in seen if e["event"] == "ckpt.durable"] == [2, 4]
    assert sum(e.get("phase") == "eval" for e in seen) >= 2
    assert seen[-1]["event"] == "job.end"


@pytest.mark.usefixtures("hf")
def test_transformers_trainer_writes_steps_evaluations_and_saves(tmp_path):
    callback = goodput_emitter.hf_callback("hf")
    state = SimpleNamespace(global_step=0, num_input_tokens_seen=700)  # before it was resumed

    def call(*hooks):
        for hook in hooks:
            getattr(callback, hook)(None, state, None)

    call("on_train_begin")
    for step in range(1, 5):
        call("on_step_begin")
        state.global_step, state.num_input_tokens_seen = step, 700 + 1024 * step
        call("on_step_end")
        if step > 1:  # logged after the first
            callback.on_log(None, state, None, logs={"loss": 1 / step})
        call("on_prediction_step", "on_prediction_step", "on_evaluate")
        if step % 2 == 0:
            call("on_save")
    call("on_train_end")

    assert_is_whole(events(tmp_path / "e.jsonl"))
    steps = [(e["tokens"], e.get("loss")) for e in events(tmp_path / "e.jsonl") if "dur_s" in e
             and e["event"] == "step"]  # fmt: skip
    assert steps == [(1024, None), (1024, 1 / 2), (1024, 1 / 3), (1024, 1 / 4)]


def test_lightning_writes_steps_validations_and_saves(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "lightning.pytorch", SimpleNamespace(Callback=object))
    monkeypatch.setitem(sys.modules, "lightning", SimpleNamespace())
    trainer = SimpleNamespace(global_step=0, strategy=SimpleNamespace(checkpoint_io=None))
    callback = goodput_emitter.lightning_callback("pl", tmp_path / "e.jsonl")

    callback.setup(trainer, None, "fit")
    callback.on_load_checkpoint(trainer, None, {})
    callback.on_sanity_check_start(trainer, None)
    callback.on_train_start(trainer, None)
    for step in range(1, 5):
        callback.on_train_batch_start(trainer)
        callback.on_before_backward(trainer)
        callback.on_after_backward(trainer)
        callback.on_before_optimizer_step(trainer)
        trainer.global_step = step
        callback.on_train_batch_end(trainer, None, {"loss": 1 / step})
        if step % 2 == 0:
            callback.on_save_checkpoint(trainer)
            callback.on_validation_start(trainer)
            callback.on_validation_end(trainer)
    callback.teardown(trainer, None, "fit")

    assert_is_whole(events(tmp_path / "e.jsonl"))
    seen = events(tmp_path / "e.jsonl")
    assert [e["loss"] for e in seen if e["event"] == "step"] == [1 / step for step in range(1, 5)]
    assert all({"fwd_s", "bwd_s", "opt_s"} <= {*e} for e in seen if e["event"] == "step")
    assert [e["event"] for e in seen if e.get("phase") == "restore"] == ["phase"]
