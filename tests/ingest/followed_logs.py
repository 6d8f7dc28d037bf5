"""Logs in each format that is followed, with what is kept from line to line in them."""

from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
# releases before 2023: only the start of training has a moment, all else follows from it
OLD_MEGATRON = """\
SLURM_JOB_ID=14
[after megatron is initialized] datetime: 2026-08-20 14:01:55 \n\
  successfully loaded checkpoint from /ckpt [ t 1/8, p 1/4 ] at iteration 400
[before the start of training step] datetime: 2026-08-20 14:02:20 \n\
 iteration 410/ 500 | elapsed time per iteration (ms): 1000.0 | lm loss: 7.1E+00 |
saving checkpoint at iteration     420 to /ckpt/run7
  successfully saved checkpoint at iteration     420 to /ckpt/run7
 save-checkpoint: 4021.70 | \n\
 iteration 430/ 500 | elapsed time per iteration (ms): 1000.0 | lm loss: 7.1E+00 |
RuntimeError: CUDA out of memory. Tried to allocate 1.95 GiB
"""
LIGHTNING = """\
2026-08-20T14:00:00.25Z Restoring states from the checkpoint path at P
2026-08-20T14:00:01.25Z Restored all states from the checkpoint at P
2026-08-20T14:00:02.25Z Epoch 0:  45%|####      | 10/100 [02:15<02:45,  3.32it/s]
2026-08-20T14:00:03.25Z Epoch 0:  46%|####      | 20/100 [02:15<02:45,  3.32it/s]
2026-08-20T14:00:04.25Z `Trainer.fit` stopped: `max_steps=5000` reached.
"""
HF_END = """\
2026-08-20T14:04:00Z {'eval_loss': 1.71, 'eval_runtime': 0.4, 'epoch': 0.5}
2026-08-20T14:05:00Z {'train_runtime': 3712.5, 'epoch': 1.0}
"""
KERNEL_NOTICE = """\
2026-11-20T12:00:01+00:00 node7 kernel: NVRM: Xid (PCI:0000:1b:00): 31, pid=77, name=python, Ch 10
2026-11-20T12:00:02+00:00 node7 kernel: NVRM: The NVIDIA GPU 0000:1b:00.0
2026-11-20T12:00:02+00:00 node7 kernel: NVRM: (PCI ID: 10de:20b0) installed in this system has
2026-11-20T12:00:02+00:00 node7 kernel: NVRM: fallen off the bus and is not responding to commands.
2026-11-20T12:00:03+00:00 node7 kernel: usb 1-1: new device
"""
VLLM = "2026-08-20 14:00:00 vLLM API server version 0.11\n" + "".join(
    f"INFO 08-20 14:03:{second} [loggers.py:123] Engine 000: Avg prompt throughput: 812.4 tokens/s,"
    " Avg generation throughput: 1530.2 tokens/s, Running: 24 reqs, Waiting: 3 reqs, GPU KV cache"
    " usage: 41.7%\n"
    for second in (11, 21, 31)
)


@dataclass(frozen=True)
class FollowedLog:
    """The log's text, its file's name and the source that reads it."""

    reads: str
    file: str
    text: str
    node: str | None = None


def golden(case, file, node=None, more=""):
    """Return the input of a golden case, and more lines, under a file's name."""
    (given,) = (GOLDEN / case).glob("input.*")
    text = given.read_text().removesuffix("\n") + "\n" + more
    return FollowedLog(case.partition("/")[0].replace("_", "-"), file, text, node)


JOB_LOGS = (
    *("megatron_two_lives_and_a_hang", "megatron_save_within_a_step", "megatron_save_of_a_fork"),
    *("torchtitan_unlabelled_ranks", "torchtitan_synchronous_save", "hf_trainer_save"),
    *("nemo_steps_between_saves", "nemo_length_of_each_step", "composer_saves_and_a_resume"),
    "nemo_undated_steps_before_a_save",
    *("deepspeed_save_is_durable_when_it_is_ready", "torchrun_root_cause", "nvrx_restart_cycles"),
    *("nccl_watchdog_year_of_any_line_before", "slurm_cancelled"),
)
FOLLOWED_LOGS = {
    **{name: golden(f"job_log/{name}", "train.log") for name in JOB_LOGS},
    "megatron-of-2021": FollowedLog("job-log", "train.log", OLD_MEGATRON),
    "hf-trainer": golden("job_log/hf_trainer_step_by_epoch", "train.log", more=HF_END),
    "lightning": FollowedLog("job-log", "train.log", LIGHTNING),
    "pods-of-loki": golden("job_log/lines_of_loki_as_json", "train.log"),
    "pods-of-stern": golden("job_log/pods_of_stern_as_json", "train.log"),
    "vllm": FollowedLog("job-log", "serve.log", VLLM),
    "job-events": golden("job_events/killed_rank_and_restart", "a.jsonl"),
    "torchtitan-structured": golden(
        "torchtitan_structured/one_rank_restores_steps_and_fails", "a.jsonl"
    ),
    "goodput-events": golden("goodput_events/every_phase_and_what_rejects_it", "a.jsonl"),
    "goodput-events-of-two-lives": golden("goodput_events/two_lives_with_orbax", "a.jsonl"),
    "otel-spans": golden("otel_spans/sdk_and_otlp_lines", "a.jsonl"),
    "nccl-inspector": golden("nccl_inspector/verbose_and_plain_of_two_versions", "vm-pid7.log"),
    "nccl-inspector-markers": golden("nccl_inspector/records_without_a_header", "vm-pid7.log"),
    "nccl-debug": golden("nccl_debug/a_communicator_and_one_split_off", "nccl.log"),
    "mlperf": golden("mlperf/two_ranks_of_one_node", "result_0.txt"),
    "serving-requests": golden("serving_requests/json_lines", "requests.jsonl"),
    "node-snapshot": golden("node_snapshot/two_nodes_of_a_run", "snapshots.jsonl"),
    "kernel-notice": FollowedLog("kernel-log", "kern.log", KERNEL_NOTICE),
    "kernel-journal": golden("kernel_log/journal_of_two_nodes", "kern.log"),
    "kernel-continued": golden("kernel_log/xid_over_lines_in_a_journal", "kern.log"),
    "kernel-json": golden("kernel_log/journal_as_json", "kern.json"),
    "kernel-dmesg": golden("kernel_log/dmesg_in_local_time", "kern.log", node="node7"),
}
