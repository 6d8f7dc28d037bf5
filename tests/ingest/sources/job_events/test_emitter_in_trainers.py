"""The emitter in trainers: those of PyPI on two processes of a CPU, whole ones on a GPU.

They are in no environment of ours: `pip install torch accelerate deepspeed`; with a GPU
`pip install torchtitan==0.2.2`, and a clone of Megatron-LM on PYTHONPATH.
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
import sys
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
TORCHTITAN = """
import json
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from torchtitan.config import ConfigManager
from torchtitan.hf_datasets import DatasetConfig
from torchtitan.hf_datasets.text_datasets import DATASETS
from torchtitan.tools.logging import init_logger
from torchtitan.train import Trainer

words = ["<unk>", "<s>", "</s>", *(f"w{n}" for n in range(97))]
tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save("tokenizer.json")
with open("tokenizer_config.json", "w") as file:
    json.dump({"bos_token": "<s>", "eos_token": "</s>"}, file)
texts = [{"text": " ".join(words[3:])}] * 512
DATASETS["c4_test"] = DatasetConfig("", lambda _: Dataset.from_list(texts), lambda row: row["text"])

class Measured(Trainer):
    def forward_backward_step(self, **given):
        self.loss = super().forward_backward_step(**given)
        return self.loss

    def train_step(self, batches):
        with goodput.step(self.step) as step:
            super().train_step(batches)
            step.loss(self.loss)

init_logger()
config = ConfigManager().parse_args([
    "--model.name=llama3", "--model.flavor=debugmodel", "--model.hf_assets_path=.",
    "--metrics.log_freq=1", "--training.dataset=c4_test", "--training.steps=3",
    "--training.seq_len=256", "--lr_scheduler.warmup_steps=1",
    "--checkpoint.enable", f"--checkpoint.folder={saved}", "--job.dump_folder=.",
])
with goodput.run("trained"):
    goodput.plan(3)
    trainer = Measured(config)
    save = trainer.checkpointer.save

    def save_last(number, last_step=False):
        if last_step:
            with goodput.phase("ckpt_save"):
                save(number, last_step=True)
            goodput.durable(number)

    trainer.checkpointer.save = save_last
    trainer.train()
"""
MEGATRON_LM = """
import runpy
import megatron.training.training as training

take_step, save_checkpoint = training.train_step, training.save_checkpoint

def train_step(*given, iteration, **others):
    with goodput.step(iteration + 1) as step:
        found = take_step(*given, iteration=iteration, **others)
        step.loss(next(iter(found[0].values())))
    return found

def save(number, *given, **others):
    with goodput.phase("ckpt_save"):
        save_checkpoint(number, *given, **others)
    goodput.durable(number)

training.train_step, training.save_checkpoint = train_step, save
sys.argv[1:] = f'''
    --num-layers 1 --hidden-size 64 --num-attention-heads 2 --seq-length 64 --bf16
    --max-position-embeddings 64 --micro-batch-size 2 --global-batch-size 2 --train-iters 3
    --lr 1e-4 --lr-decay-style constant --mock-data --tokenizer-type NullTokenizer
    --vocab-size 100 --transformer-impl local --no-persist-layer-norm --eval-iters 1
    --no-gradient-accumulation-fusion --no-masked-softmax-fusion --log-interval 1
    --attention-softmax-in-fp32 --num-workers 1 --save-interval 3 --save {saved}
    --eval-interval 100
'''.split()
with goodput.run("trained"):
    goodput.plan(3)
    runpy.run_module("pretrain_gpt", run_name="__main__", alter_sys=True)
"""


def run_ranks(script, folder, ranks=RANKS):
    """Run a script on ranks by torchrun; return what they print."""
    path = folder / "train.py"
    path.write_text(BEGINNING + script)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(goodput_emitter.__file__).parent), *sys.path]),
        "JOB_EVENTS": f"{folder}/",
        "DS_ACCELERATOR": "cpu",
        **({} if ranks == 1 else {"CUDA_VISIBLE_DEVICES": ""}),  # else all are on one GPU
        "OMP_NUM_THREADS": "1",
    }
    command = [
        *(sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"),
        *(f"--nproc_per_node={ranks}", str(path), str(folder / "saved")),
    ]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("package", "script", "ranks"), [
    ("accelerate", ACCELERATE, RANKS), ("deepspeed", DEEPSPEED, RANKS),
    ("torchtitan.train", TORCHTITAN, 1), ("pretrain_gpt", MEGATRON_LM, 1),
], ids=["accelerate", "deepspeed", "torchtitan", "megatron-lm"])  # fmt: skip
def test_a_trainer_with_emitter_has_its_whole_ledger(whole_store, tmp_path, package, script, ranks):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip(package, reason=f"{package} is not installed")
    if ranks == 1 and not torch.cuda.is_available():
        pytest.skip(f"{package} needs a GPU")

    run_ranks(script, tmp_path, ranks)
    files = sorted(tmp_path.glob("*.jsonl"))
    ingest(whole_store, "job-events", files, ReadOptions(cluster="lab"))
    whole_store.build()

    assert len(files) == ranks
    assert whole_store.read("select count(*) from raw.rejects").item() == 0
    steps = "select rank, step, loss > 0 from raw.job_events where event = 'step' order by all"
    assert whole_store.read(steps).rows() == [
        (rank, step, True) for rank in range(ranks) for step in range(1, STEPS + 1)
    ]
    run = "select run_key, attempts, gpus from marts.runs"
    assert whole_store.read(run).rows() == [("lab/trained", 1, ranks)]
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
