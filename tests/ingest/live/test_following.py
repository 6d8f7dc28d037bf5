# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""A log that is followed as it grows gives the rows of the whole file, however it is cut.

In each format that is followed, with what is kept from line to line in it.
"""

import itertools
import random
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import polars.selectors as cs
import pytest
from tests.ingest.fake_live import add, follow, reached
from tests.ingest.golden_cases import FIRST, golden_path, input_of

from goodput_ingest.live.tail import Tail
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import followed

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
    (given,) = golden_path(case).glob("input.*")
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
    **{
        name: golden(f"{case.parent.name}/{case.name}", input_of(case).name)
        for name, case in FIRST.items()
        if name in {*followed()} - {"job-log", "kernel-log"}
    },
    **{name: golden(f"job_log/{name}", "train.log") for name in JOB_LOGS},
    "megatron-of-2021": FollowedLog("job-log", "train.log", OLD_MEGATRON),
    "hf-trainer": golden("job_log/hf_trainer_step_by_epoch", "train.log", more=HF_END),
    "lightning": FollowedLog("job-log", "train.log", LIGHTNING),
    "pods-of-loki": golden("job_log/lines_of_loki_as_json", "train.log"),
    "pods-of-stern": golden("job_log/pods_of_stern_as_json", "train.log"),
    "vllm": FollowedLog("job-log", "serve.log", VLLM),
    "torchtitan-structured": golden(
        "torchtitan_structured/one_rank_restores_steps_and_fails", "a.jsonl"
    ),
    "goodput-events": golden("goodput_events/every_phase_and_what_rejects_it", "a.jsonl"),
    "goodput-events-of-two-lives": golden("goodput_events/two_lives_with_orbax", "a.jsonl"),
    "otel-spans": golden("otel_spans/sdk_and_otlp_lines", "a.jsonl"),
    "nccl-inspector": golden("nccl_inspector/verbose_and_plain_of_two_versions", "vm-pid7.log"),
    "nccl-inspector-markers": golden("nccl_inspector/records_without_a_header", "vm-pid7.log"),
    "serving-requests": golden("serving_requests/json_lines", "requests.jsonl"),
    "kernel-notice": FollowedLog("kernel-log", "kern.log", KERNEL_NOTICE),
    "kernel-journal": golden("kernel_log/journal_of_two_nodes", "kern.log"),
    "kernel-continued": golden("kernel_log/xid_over_lines_in_a_journal", "kern.log"),
    "kernel-json": golden("kernel_log/journal_as_json", "kern.json"),
    "kernel-dmesg": golden("kernel_log/dmesg_in_local_time", "kern.log", node="node7"),
}


NOW = datetime(2026, 11, 20, 13)
ZONE = "Europe/Berlin"


def tail(log, folder):
    return Tail(str(folder), log.reads, cluster="lab", timezone=ZONE, node=log.node)


def known(store):
    """Return all evidence and rejects, without their load numbers."""
    found, loaded = [], store.read("select distinct table_name from state.ingested")["table_name"]
    for table in {*loaded} - {"rejects"}:
        rows = store.read(f"select * exclude (load_sequence) from raw.{table}")
        # polars divides a column of one row otherwise than one of several: the last bit differs
        rows = rows.with_columns(cs.float().round_sig_figs(12))
        found += [(table, *row) for row in rows.rows()]
    rejects = store.read("select line, reason, content from raw.rejects").rows()
    return sorted([*found, *(("rejects", *row) for row in rejects)], key=repr)


def of_whole(store, log, folder):
    """Return what a log gives that is read in whole."""
    path = folder / log.file
    path.write_text(log.text)
    ingest(store, log.reads, [path], ReadOptions("lab", ZoneInfo(ZONE), node=log.node))
    path.unlink()
    return known(store)


def pieces_of(text):
    """Return the text in 17 pieces: half of the cuts are at the ends of lines, half anywhere."""
    chance = random.Random(text)  # noqa: S311 -- seeded, so that a failure comes again
    ends = [at + 1 for at, char in enumerate(text[:-1]) if char == "\n"]
    cuts = {*chance.sample(ends, min(len(ends), 8)), *chance.sample(range(1, len(text)), 8)}
    return [text[a:b] for a, b in itertools.pairwise((0, *sorted(cuts), len(text)))]


@pytest.mark.usefixtures("all_packages")
def test_each_followed_format_has_a_log_here():
    assert {log.reads for log in FOLLOWED_LOGS.values()} == set(followed())


@pytest.mark.parametrize("log", FOLLOWED_LOGS.values(), ids=FOLLOWED_LOGS)
def test_a_log_cut_anywhere_has_all_rows_though_collectors_restart(emptied_store, tmp_path, log):
    whole = of_whole(emptied_store(), log, tmp_path)
    store, source = emptied_store(), tail(log, tmp_path)

    since = {}
    for number, piece in enumerate(pieces_of(log.text)):
        if number in (9, 13):
            source, since = tail(log, tmp_path), reached(store)
        add(tmp_path / log.file, piece)
        follow(store, source, NOW, since)

    assert known(store) == whole != []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["megatron_two_lives_and_a_hang", "serving-requests"])
def test_a_followed_log_in_utf_16_has_the_rows_of_utf_8(emptied_store, tmp_path, encoding, name):
    # a line's end is a whole character
    text = FOLLOWED_LOGS[name].text.replace("/ckpt", "/größer/\u0a0a/\U0001f680")
    log = replace(FOLLOWED_LOGS[name], text=text)
    whole = of_whole(emptied_store(), log, tmp_path)
    store, source = emptied_store(), tail(log, tmp_path)
    content = f"\ufeff{text}".encode(encoding)

    for start in range(0, len(content), 501):
        with (tmp_path / log.file).open("ab") as file:
            file.write(content[start : start + 501])
        follow(store, source, NOW, {})

    assert known(store) == whole != []
