"""A small log in each format that is followed, with what is kept from line to line in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
KUBECTL = "2026-08-20T14:0{minute}:{second:02}.25Z {text}\n"


@dataclass(frozen=True)
class FollowedLog:
    """The log's text, its file's name and the source that reads it."""

    reads: str
    file: str
    text: str
    node: str | None = None


def golden(case: str) -> str:
    (file,) = (GOLDEN / case).glob("input.*")
    return file.read_text().removesuffix("\n") + "\n"


def stamped(*texts: str) -> str:
    """Return lines as `kubectl logs --timestamps` prints them, a second apart."""
    return "".join(
        KUBECTL.format(minute=n // 60, second=n % 60, text=text) for n, text in enumerate(texts)
    )


def titan(second: int, said: str) -> str:
    return f"[titan] 2026-08-20 14:03:{second:02},482 - root - INFO - {said}\n"


OLD_ITERATION = (
    " iteration {step:8}/   50000 | elapsed time per iteration (ms): 1000.0 | learning rate:"
    " 1.000E-04 | lm loss: 7.1E+00 | loss scale: 1.0 |\n"
)
# releases before 2023: only the start of training has a moment, all else follows from it
OLD_MEGATRON = "".join(
    [
        "SLURM_JOB_ID=14\n",
        "  log_interval ................................... 10\n",
        "time to initialize megatron (seconds): 41.207\n",
        "[after megatron is initialized] datetime: 2026-08-20 14:01:55 \n",
        "  successfully loaded checkpoint from /ckpt [ t 1/8, p 1/4 ] at iteration 400\n",
        "[before the start of training step] datetime: 2026-08-20 14:02:20 \n",
        OLD_ITERATION.format(step=410),
        OLD_ITERATION.format(step=420),
        "saving checkpoint at iteration     420 to /ckpt/run7\n",
        "  successfully saved checkpoint at iteration     420 to /ckpt/run7\n",
        "  successfully saved checkpoint from iteration     420 to /ckpt/run7\n",
        " save-checkpoint: 4021.70 | \n",
        OLD_ITERATION.format(step=430),
        "RuntimeError: CUDA out of memory. Tried to allocate 1.95 GiB\n",
        "slurmstepd: error: *** JOB 14 ON n1 CANCELLED AT 2026-08-20T14:04:00 DUE TO TIME LIMIT "
        "***\n",
    ]
)
TORCHTITAN = "".join(
    [
        titan(1, "Starting job: llama3"),
        "wandb: Syncing run brisk-sun-7\n",
        titan(2, "Loading the checkpoint from outputs/checkpoint/step-400."),
        titan(5, "Finished loading the checkpoint in 3.00 seconds."),
        titan(6, "Training starts at step 401"),
        titan(10, "step: 410  loss:  6.41230  tps: 8,214"),
        titan(11, "Saving the checkpoint."),
        titan(13, "Finished saving the checkpoint in 2.00 seconds."),
        titan(20, "step: 420  loss:  6.31230  tps: 8,214"),
        titan(30, "Training completed"),
    ]
)
HF = stamped(
    "***** Running training *****",
    "  Num Epochs = 2",
    "  Total optimization steps = 100",
    "{'loss': '1.932', 'learning_rate': '4.5e-05', 'epoch': '0.2'}",
    "Saving model checkpoint to out/checkpoint-20",
    "Model weights saved in out/checkpoint-20/model.safetensors",
    "{'loss': '1.832', 'learning_rate': '4.5e-05', 'epoch': '0.4'}",
    "{'eval_loss': 1.71, 'eval_runtime': 0.4, 'epoch': 0.5}",
    "{'train_runtime': 3712.5, 'epoch': 1.0}",
)
LIGHTNING = stamped(
    "Restoring states from the checkpoint path at P",
    "Restored all states from the checkpoint at P",
    "Epoch 0:  45%|####      | 10/100 [02:15<02:45,  3.32it/s]",
    "Epoch 0:  46%|####      | 20/100 [02:15<02:45,  3.32it/s]",
    "`Trainer.fit` stopped: `max_steps=5000` reached.",
)
NEMO = "".join(
    [
        "Training epoch 0, iteration 99/4999 | lr: 3e-05 | global_step: 99 | loss: 7.1\n",
        "[NeMo I 2026-08-20 14:20:21 nemo_logging:393] Global Checkpoint Save : Rank: 0 : "
        "Iteration: 100 : Start time: 1787235602.001s : Save duration: 19.612s\n",
        "Training epoch 0, iteration 199/4999 | lr: 3e-05 | global_step: 199 | loss: 7.1\n",
        "[NeMo I 2026-08-20 14:40:21 nemo_logging:393] Global Checkpoint Save : Rank: 0 : "
        "Iteration: 200 : Start time: 1787236802.001s : Save duration: 19.612s\n",
        "[NeMo I 2026-08-20 14:40:30 nemo_logging:393] Successfully saved checkpoint from "
        "iteration     199 to /ckpt\n",
    ]
)
DEEPSPEED = "".join(
    f"[2026-08-20 14:03:{second:02},482] [INFO] [logging.py:128:log_dist] [Rank 0] {said}\n"
    for second, said in (
        (11, "step=120, skipped=0, lr=[2.4e-05], mom=[(0.9, 0.95)]"),
        (21, "step=130, skipped=0, lr=[2.4e-05], mom=[(0.9, 0.95)]"),
        (22, "[Torch] Checkpoint global_step130 is about to be saved!"),
        (29, "[Torch] Checkpoint global_step130 is ready now!"),
        (41, "step=140, skipped=0, lr=[2.4e-05], mom=[(0.9, 0.95)]"),
    )
)
VLLM = "".join(
    [
        "2026-08-20 14:00:00 vLLM API server version 0.11\n",
        *(
            f"INFO 08-20 14:03:{second} [loggers.py:123] Engine 000: Avg prompt throughput: 812.4 "
            "tokens/s, Avg generation throughput: 1530.2 tokens/s, Running: 24 reqs, Waiting: 3 "
            "reqs, GPU KV cache usage: 41.7%\n"
            for second in (11, 21, 31)
        ),
    ]
)
FAILURES = "".join(
    [
        "2026-08-20 14:20:00 launching\n",
        "[rank3]:[E820 14:31:01.114302112 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=2635, OpType=ALLREDUCE, NumelIn=8, "
        "NumelOut=8, Timeout(ms)=600000) ran for 600024 milliseconds before timing out.\n",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has\n",
        "Root Cause (first observed failure):\n",
        "[0]:\n",
        "  time      : 2026-08-20_14:31:02\n",
        "  host      : node004\n",
        "  rank      : 27 (local_rank: 3)\n",
        "  exitcode  : -9 (pid: 51220)\n",
        "  error_file: <N/A>\n",
        "  traceback : Signal 9 (SIGKILL) received by PID 51220\n",
        "  - Cycle: 1 Event: failure_detected Node: n4 Rank: 27 Time: 2026-08-20 14:31:02.1 UTC\n",
        "  - Cycle: 1 Event: failure_detected Node: n5 Rank: 3 Time: 2026-08-20 14:31:02.2 UTC\n",
        "  - Cycle: 1 Event: worker_start_started Node: n4 Rank: 27 Time: "
        "2026-08-20 14:31:09.118 UTC\n",
        "slurmstepd: error: *** JOB 14 ON n1 CANCELLED AT 2026-08-20T14:40:00 ***\n",
    ]
)
KERNEL_NOTICE = "".join(
    f"2026-11-20T12:00:0{second}+00:00 node7 kernel: {said}\n"
    for second, said in (
        (1, "NVRM: Xid (PCI:0000:1b:00): 31, pid=77, name=python, Ch 00000010"),
        (2, "NVRM: The NVIDIA GPU 0000:1b:00.0"),
        (2, "NVRM: (PCI ID: 10de:20b0) installed in this system has"),
        (2, "NVRM: fallen off the bus and is not responding to commands."),
        (3, "usb 1-1: new device"),
    )
)


def google(**fields: object) -> str:
    return json.dumps({"job_name": "run7"} | fields) + "\n"


GOOGLE = "".join(
    [
        google(job_start_time=1787234400.0),
        google(tpu_init_start_time=1787234401.0),
        google(tpu_init_end_time=1787234409.0),
        *(google(step_count=n, step_start_time=1787234410.0 + 10 * n) for n in range(4)),
        json.dumps(
            {
                "step": 3,
                "event_type": "save",
                "synchronous": True,
                "checkpoint_manager_blocking_start_time": 1787234441.0,
                "checkpoint_manager_blocking_duration_secs": 2.0,
            }
        )
        + "\n",
        google(step_count=4, step_start_time=1787234450.0),
        google(job_end_time=1787234470.0),
    ]
)

FOLLOWED_LOGS = {
    "megatron": FollowedLog(
        "job-log", "train.log", golden("job_log/megatron_two_lives_and_a_hang")
    ),
    "megatron-of-2021": FollowedLog("job-log", "train.log", OLD_MEGATRON),
    "torchtitan": FollowedLog("job-log", "train.log", TORCHTITAN),
    "hf-trainer": FollowedLog("job-log", "train.log", HF),
    "lightning": FollowedLog("job-log", "train.log", LIGHTNING),
    "nemo": FollowedLog("job-log", "train.log", NEMO),
    "deepspeed": FollowedLog("job-log", "train.log", DEEPSPEED),
    "vllm": FollowedLog("job-log", "serve.log", VLLM),
    "failures": FollowedLog("job-log", "train.log", FAILURES),
    "job-events": FollowedLog(
        "job-events", "a.jsonl", golden("job_events/killed_rank_and_restart")
    ),
    "torchtitan-structured": FollowedLog(
        "torchtitan-structured",
        "a.jsonl",
        golden("torchtitan_structured/one_rank_restores_steps_and_fails"),
    ),
    "goodput-events": FollowedLog("goodput-events", "a.jsonl", GOOGLE),
    "goodput-events-of-two-lives": FollowedLog(
        "goodput-events", "a.jsonl", golden("goodput_events/two_lives_with_orbax")
    ),
    "otel-spans": FollowedLog("otel-spans", "a.jsonl", golden("otel_spans/sdk_and_otlp_lines")),
    "nccl-inspector": FollowedLog(
        "nccl-inspector", "vm-pid7.log", golden("nccl_inspector/verbose_and_plain_of_two_versions")
    ),
    "nccl-debug": FollowedLog(
        "nccl-debug", "nccl.log", golden("nccl_debug/a_communicator_and_one_split_off")
    ),
    "mlperf": FollowedLog("mlperf", "result_0.txt", golden("mlperf/two_ranks_of_one_node")),
    "serving-requests": FollowedLog(
        "serving-requests", "requests.jsonl", golden("serving_requests/json_lines")
    ),
    "kernel-notice": FollowedLog("kernel-log", "kern.log", KERNEL_NOTICE),
    "kernel-journal": FollowedLog(
        "kernel-log", "kern.log", golden("kernel_log/journal_of_two_nodes")
    ),
    "kernel-json": FollowedLog("kernel-log", "kern.json", golden("kernel_log/journal_as_json")),
    "kernel-dmesg": FollowedLog(
        "kernel-log", "kern.log", golden("kernel_log/dmesg_in_local_time"), node="node7"
    ),
}
