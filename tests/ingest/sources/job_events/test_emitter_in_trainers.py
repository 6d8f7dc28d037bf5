"""The emitter in trainers as they are installed from PyPI, on two processes of a CPU.

They are in no environment of ours: `pip install torch accelerate deepspeed megatron-core`.
"""

import os
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import goodput_emitter
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = pytest.mark.slow

RANKS = 2
STEPS = 3
BEGINNING = """
import contextlib, os, sys
import torch
import goodput_emitter as goodput

torch.manual_seed(1)
saved = sys.argv[1]
"""
ACCELERATE = """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
data = [(torch.ones(4), torch.ones(1))] * 12  # of two ranks and two samples a batch
model, optimizer, batches = accelerator.prepare(
    model, torch.optim.SGD(model.parameters(), lr=0.01), torch.utils.data.DataLoader(data, 2)
)
with goodput.run("trained"):
    goodput.plan(len(batches))
    for number, (given, wanted) in enumerate(batches, 1):
        with goodput.step(number) as step:
            with step.forward():
                loss = (model(given) - wanted).pow(2).mean()
            with step.backward():
                accelerator.backward(loss)
            with step.optimizer():
                optimizer.step()
                optimizer.zero_grad()
            step.loss(loss)
    with goodput.phase("ckpt_save"):
        accelerator.save_state(saved)
    goodput.durable(number)
"""
DEEPSPEED = """
import deepspeed
from deepspeed.utils import set_log_level_from_string

set_log_level_from_string("info")  # else it prints neither steps nor saves
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # it is compiled for minutes
deepspeed.init_distributed("gloo")
model = torch.nn.Linear(4, 1)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    config={"train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_print": 1},
)
with goodput.run("trained"):
    goodput.plan(3)
    for number in range(1, 4):
        with goodput.step(number) as step:
            for _ in range(2):
                loss = (engine(torch.ones(1, 4)) - 1).pow(2).mean()
                engine.backward(loss)
                engine.step()
            step.loss(loss)
    with goodput.phase("ckpt_save"):
        engine.save_checkpoint(saved)
    goodput.durable(number)
"""
MEGATRON = """
torch.cuda.current_device = lambda: "cpu"  # megatron.core asks where its buffers are
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel import get_cuda_rng_tracker
from megatron.core.transformer.transformer_config import TransformerConfig

type(get_cuda_rng_tracker()).fork = lambda *_: contextlib.nullcontext()
torch.distributed.init_process_group("gloo")
parallel_state.initialize_model_parallel()
config = TransformerConfig(
    num_layers=1, hidden_size=8, num_attention_heads=2, use_cpu_initialization=True,
    attention_dropout=0.0, hidden_dropout=0.0,
)
model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=16, max_sequence_length=8)
model = torch.nn.parallel.DistributedDataParallel(model)
goodput.measure_communication(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
tokens = torch.arange(8)[None]
mask = torch.ones(1, 1, 8, 8).triu(1) > 0
with goodput.run("trained"):
    goodput.plan(3)
    for number in range(1, 4):
        with goodput.step(number) as step:
            loss = model(tokens, tokens, mask, labels=tokens).mean()
            loss.backward()
            optimizer.step()
            step.loss(loss)
    with goodput.phase("ckpt_save"):
        torch.save(model.state_dict(), f"{saved}.{os.environ['RANK']}")
    goodput.durable(number)
"""


def run_ranks(script, folder):
    """Run a script on two ranks by torchrun; return what they print."""
    path = folder / "train.py"
    path.write_text(BEGINNING + script)
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(goodput_emitter.__file__).parent),
        "JOB_EVENTS": f"{folder}/",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
    }
    command = [
        *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"),
        *(f"--nproc_per_node={RANKS}", str(path), str(folder / "saved")),
    ]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("package", "script"),
    [("accelerate", ACCELERATE), ("deepspeed", DEEPSPEED), ("megatron.core", MEGATRON)],
    ids=["accelerate", "deepspeed", "megatron-core"],
)
def test_a_trainer_that_runs_with_the_emitter_has_a_complete_ledger(
    whole_store, tmp_path, package, script
):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip(package, reason=f"{package} is not installed")

    run_ranks(script, tmp_path)
    files = sorted(tmp_path.glob("*.jsonl"))
    ingest(whole_store, "job-events", files, ReadOptions(cluster="lab"))
    whole_store.build()

    assert len(files) == RANKS
    assert whole_store.read("select count(*) from raw.rejects").item() == 0
    steps = "select rank, step, loss > 0 from raw.job_events where event = 'step' order by all"
    assert whole_store.read(steps).rows() == [
        (rank, step, True) for rank in range(RANKS) for step in range(1, STEPS + 1)
    ]
    run = "select run_key, attempts, gpus from marts.runs"
    assert whole_store.read(run).rows() == [("lab/trained", 1, RANKS)]
    kept = "select kept_steps, lost_steps from marts.attempts"
    assert whole_store.read(kept).rows() == [(STEPS, 0)]
    planned = "select value from marts.run_attributes where attribute = 'planned_steps'"
    assert set(whole_store.read(planned).to_series()) == {f"{STEPS}"}


def test_the_log_of_deepspeed_has_the_steps_that_the_emitter_has(store, tmp_path):
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    path = tmp_path / "train.log"

    path.write_text(run_ranks(DEEPSPEED, tmp_path))
    ingest(store, "auto", [path], ReadOptions(cluster="lab", zone=ZoneInfo("UTC")))

    found = "select event, step, phase from raw.job_events where event <> 'metric' order by ts"
    assert store.read(found).rows() == [
        *(("step", step, None) for step in range(1, STEPS + 1)), ("phase.start", None, "ckpt_save")
    ]  # fmt: skip
