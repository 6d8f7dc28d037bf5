"""What the emitter measures within a step: on the GPU, whose events come later, or by the clock."""

import json
import sys
import warnings
from types import SimpleNamespace

import pytest
from tests.tables import each

import goodput_emitter
from goodput_emitter import Emitter


class Gpu:
    """A GPU that does its work when it is asked to, and PyTorch's events in its stream."""

    def __init__(self):
        self.queued_ms = self.now_ms = 0.0
        self.is_broken = False

    def event(self, **_):
        """Return an event as `torch.cuda.Event`."""
        mark = SimpleNamespace(at_ms=None)
        mark.record = lambda: setattr(mark, "at_ms", self.queued_ms)
        mark.query = lambda: self.came_to(mark)
        mark.synchronize = lambda: setattr(self, "now_ms", max(self.now_ms, mark.at_ms))
        mark.elapsed_time = lambda last: last.at_ms - mark.at_ms
        return mark

    def came_to(self, mark):
        """Say whether it has come to an event."""
        if self.is_broken:
            raise RuntimeError("CUDA error: unspecified launch failure")
        return mark.at_ms <= self.now_ms

    def loss(self, value):
        """Return a tensor on the GPU."""
        copied = SimpleNamespace(to=lambda *_, **__: value)
        return SimpleNamespace(is_cuda=True, detach=lambda: copied)


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    cuda = SimpleNamespace(
        is_initialized=lambda: True, is_current_stream_capturing=lambda: False, Event=made.event
    )
    monkeypatch.setattr(goodput_emitter, "_gpu_uuid", lambda _: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    return made


@pytest.fixture
def emitter(tmp_path, monkeypatch):
    made = Emitter("run7", tmp_path / "e.jsonl")
    monkeypatch.setattr(goodput_emitter, "_current", made)
    return made


def steps(emitter):
    if not emitter.path.exists():
        return []
    read = map(json.loads, emitter.path.read_text().splitlines())
    return [event for event in read if event["event"] == "step"]


def parts(event):
    return {name: event[name] for name in ("fwd_s", "bwd_s", "opt_s", "comm_s") if name in event}


def train_a_step(gpu, step):
    for part, took_ms in ((step.forward, 100), (step.backward, 200), (step.communication, 30),
                          (step.communication, 20), (step.optimizer, 10)):  # fmt: skip
        with part():
            gpu.queued_ms += took_ms


def test_parts_of_a_step_are_measured_on_the_gpu_and_written_when_it_has_come_there(gpu, emitter):
    with emitter.step(1) as step:
        train_a_step(gpu, step)
        step.loss(gpu.loss(2.5))
    assert steps(emitter) == []

    gpu.now_ms = 400
    with emitter.step(2):
        pass

    first, second = steps(emitter)
    assert parts(first) == {"fwd_s": 0.1, "bwd_s": 0.2, "comm_s": 0.05, "opt_s": 0.01}
    assert (first["step"], first["loss"], second["step"]) == (1, 2.5, 2)
    assert first["ts"] <= second["ts"]


def test_a_gpu_that_fails_takes_its_parts_and_no_step(gpu, emitter):
    def train():
        with emitter.run():
            with emitter.step(1) as step:
                train_a_step(gpu, step)
                step.loss(gpu.loss(2.5))
            gpu.is_broken = True
            raise RuntimeError

    with pytest.raises(RuntimeError):
        train()

    (step,) = steps(emitter)
    assert parts(step) == {}
    assert "loss" not in step


def test_what_cannot_be_measured_fails_no_step_and_no_part_of_it(gpu, emitter):
    """As events of two GPUs, and a loss of several values."""
    with emitter.run(), emitter.step(1) as step:
        train_a_step(gpu, step)
        step.span("comm_s", object(), gpu.event())
        step.loss(gpu.loss([1.0, 2.0]))

    (found,) = steps(emitter)
    assert parts(found) == {"fwd_s": 0.1, "bwd_s": 0.2, "opt_s": 0.01}
    assert "loss" not in found


def test_the_end_of_a_run_waits_for_every_step(gpu, emitter):
    with emitter.run():
        with emitter.step(1) as step:
            train_a_step(gpu, step)
        with emitter.step(2):
            pass

    assert [parts(step).get("bwd_s") for step in steps(emitter)] == [0.2, None]


def test_however_far_behind_the_gpu_is_steps_are_written(gpu, emitter, monkeypatch):
    monkeypatch.setattr(goodput_emitter, "UNMEASURED_MAX", 3)
    for number in range(5):
        with emitter.step(number) as step:
            train_a_step(gpu, step)

    assert [step["step"] for step in steps(emitter)] == [0, 1]


class WithGradient:
    """A tensor of a CPU from which gradients are computed: PyTorch warns where it is a number."""

    def detach(self):
        """Return its value without a gradient."""
        return 2.5

    def __float__(self):
        warnings.warn("Converting a tensor with requires_grad=True to a scalar", stacklevel=2)
        return 2.5


@pytest.mark.filterwarnings("error")
@each(
    (2.5, 2.5), (float("nan"), "nan"), (float("-inf"), "-inf"), ("x", None), (WithGradient(), 2.5)
)
def test_without_a_gpu_parts_are_of_the_process_and_the_loss_a_number(emitter, loss, expected):
    with emitter.step(1) as step:
        step.loss(loss)
        with step.forward(), step.data_wait():
            pass

    (found,) = steps(emitter)
    assert (found.get("loss"), found["fwd_s"] >= found["data_s"] >= 0) == (expected, True)


def test_communication_of_ddp_is_what_comes_after_the_last_gradient(gpu, emitter, monkeypatch):
    future = SimpleNamespace(value=lambda: "reduced", then=lambda call: call(future))

    def all_reduce(*_):
        gpu.queued_ms += 40
        return future

    hooks = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
    monkeypatch.setitem(sys.modules, hooks, SimpleNamespace(allreduce_hook=all_reduce))
    registered = []
    goodput_emitter.measure_communication(
        SimpleNamespace(register_comm_hook=lambda _, hook: registered.append(hook))
    )
    first, last = (SimpleNamespace(is_last=lambda is_last=is_last: is_last) for is_last in (0, 1))

    assert registered[0].__annotations__ == {}  # PyTorch compares them with its own types
    with emitter.run():
        registered[0](None, last)  # outside of a step
        with emitter.step(1):
            registered[0](None, first)
            assert registered[0](None, last) == "reduced"

    assert parts(steps(emitter)[0]) == {"comm_s": 0.04}


def test_a_model_without_a_hook_is_reported_and_fails_nothing(capsys):
    goodput_emitter.measure_communication(object())
    assert "communication is not measured" in capsys.readouterr().err
