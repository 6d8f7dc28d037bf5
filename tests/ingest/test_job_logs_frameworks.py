"""What each framework's lines become: the text of a log in, job events out."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.load import ingest
from goodput_ingest.source import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.store import LocalStore

UTC = ReadOptions(zone=ZoneInfo("UTC"))
ITERATION = (
    " [2026-08-20 14:03:{second:02}.500000] iteration {step:8}/   50000 | consumed samples: 512 |"
    " elapsed time per iteration (ms): {ms} | lm loss: 7.1E+00 | \n"
)
TITAN = "[titan] 2026-08-20 14:{clock} - root - INFO - "


def told(
    store: LocalStore, folder: Path, text: str, options: ReadOptions = UTC
) -> list[dict[str, Any]]:
    """Return the events of a log, in time's order."""
    path = folder / "slurm-4711.out"
    path.write_text(text)
    ingest(store, "job-log", [path], options)
    return store.read(
        """select event, strftime(ts, '%H:%M:%S.%g') as at, step, round(dur_s, 3) as dur_s, phase,
            kind, msg, reports_durability, extra::varchar as extra
        from raw.job_events order by ts, event, step"""
    ).rows(named=True)


def brief(events: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(event[name] for name in names) for event in events]


# Megatron-LM


def test_a_megatron_line_stands_for_all_iterations_since_the_last(
    store: LocalStore, tmp_path: Path
) -> None:
    text = ITERATION.format(second=10, step=1, ms=1000.0) + ITERATION.format(
        second=16, step=4, ms=2000.0
    )

    events = told(store, tmp_path, text)

    assert brief(events, "at", "step", "dur_s") == [
        ("14:03:10.500", 1, 1.0),
        ("14:03:12.500", 2, 2.0),
        ("14:03:14.500", 3, 2.0),
        ("14:03:16.500", 4, 2.0),
    ]
    assert [json.loads(e["extra"]).get("mean_of") for e in events] == [None, 3, 3, 3]


def test_the_first_megatron_line_stands_for_as_many_iterations_as_the_log_interval(
    store: LocalStore, tmp_path: Path
) -> None:
    text = "  log_interval .................................... 3\n" + ITERATION.format(
        second=20, step=3, ms=2000.0
    )

    assert brief(told(store, tmp_path, text), "step", "dur_s") == [(1, 2.0), (2, 2.0), (3, 2.0)]


def test_a_first_line_far_on_without_a_loaded_checkpoint_is_not_taken_back_to_the_first_iteration(
    store: LocalStore, tmp_path: Path
) -> None:
    events = told(store, tmp_path, ITERATION.format(second=20, step=4000, ms=2000.0))

    assert brief(events, "step", "dur_s") == [(4000, 2.0)]


def test_megatron_iterations_without_moments_follow_each_other_from_the_start_of_training(
    store: LocalStore, tmp_path: Path
) -> None:
    """As releases of 2021 print them."""
    text = (
        "[before the start of training step] datetime: 2026-08-20 14:00:00 \n"
        " iteration        1/    1000 | elapsed time per iteration (ms): 5000.0 | loss: 1 |\n"
        " iteration        2/    1000 | elapsed time per iteration (ms): 2000.5 | loss: 1 |\n"
    )

    assert brief(told(store, tmp_path, text), "at", "step", "dur_s") == [
        ("14:00:05.000", 1, 5.0),
        ("14:00:07.000", 2, 2.001),
    ]


def test_saving_is_not_saved(store: LocalStore, tmp_path: Path) -> None:
    saving = "[2026-08-20 14:03:10.6] saving checkpoint at iteration      10 to /ckpt in torch\n"
    saved = (
        "  [2026-08-20 14:03:30.6] successfully saved checkpoint from iteration      10 to /ckpt\n"
    )

    begun = told(store, tmp_path, saving)
    done = told(store, tmp_path, saving + saved)

    assert brief(begun, "event", "phase", "step") == [("phase.start", "ckpt_save", None)]
    assert brief(done[1:], "event", "at", "phase", "step") == [
        ("ckpt.durable", "14:03:30.600", None, 10),
        ("phase.end", "14:03:30.600", "ckpt_save", None),
    ]


def test_a_save_that_ends_while_training_goes_on_is_durable_then_and_blocked_nothing_so_long(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        ITERATION.format(second=10, step=10, ms=1000.0)
        + "[2026-08-20 14:03:10.6] saving checkpoint at iteration      10 to /ckpt in torch\n"
        + ITERATION.format(second=20, step=20, ms=1000.0)
        + "  [2026-08-20 14:03:25.0] successfully saved checkpoint from iteration      10 to /c\n"
    )

    events = told(store, tmp_path, text)

    assert [e["event"] for e in events if e["phase"]] == ["phase.start"]
    assert [(e["at"], e["step"]) for e in events if e["event"] == "ckpt.durable"] == [
        ("14:03:25.000", 10)
    ]


def test_a_save_announced_as_asynchronous_is_no_phase(store: LocalStore, tmp_path: Path) -> None:
    text = (
        "  async_save ...................................... True\n"
        "[2026-08-20 14:03:10.6] saving checkpoint at iteration      10 to /ckpt in torch\n"
        "  [2026-08-20 14:03:25.0] successfully saved checkpoint from iteration      10 to /c\n"
    )

    assert brief(told(store, tmp_path, text), "event", "step") == [("ckpt.durable", 10)]


def test_the_time_of_a_save_lengthens_the_step_that_it_fell_into(
    store: LocalStore, tmp_path: Path
) -> None:
    """Three steps of 2 s and a save of 4 s in the 10 s between the two lines."""
    text = (
        ITERATION.format(second=10, step=10, ms=2000.0)
        + "[2026-08-20 14:03:13.5] saving checkpoint at iteration      11 to /ckpt in torch\n"
        + "  [2026-08-20 14:03:17.5] successfully saved checkpoint from iteration      11 to /c\n"
        + ITERATION.format(second=20, step=13, ms=2000.0)
    )

    steps = [e for e in told(store, tmp_path, text) if e["event"] == "step"]

    assert brief(steps[1:], "at", "step", "dur_s") == [
        ("14:03:12.500", 11, 2.0),
        ("14:03:18.500", 12, 6.0),
        ("14:03:20.500", 13, 2.0),
    ]


def test_an_initialisation_of_less_than_no_time_is_left_out(
    store: LocalStore, tmp_path: Path
) -> None:
    """Clocks of nodes differ: a real log says -2.937 seconds."""
    text = (
        "time to initialize megatron (seconds): -2.937\n"
        "[after megatron is initialized] datetime: 2026-08-20 14:00:00 \n"
    )

    assert brief(told(store, tmp_path, text), "event", "at") == [("job.start", "14:00:00.000")]


# torchtitan


def test_torchtitan_steps_share_the_time_between_two_lines(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        TITAN.format(clock="03:00,000") + "Training starts at step 401\n"
        + TITAN.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214  mfu: N/A\n"
        + TITAN.format(clock="03:20,000") + "step: 405  loss:  6.41230  tps: 8,214  mfu: 40.66%\n"
    )  # fmt: skip

    assert brief(told(store, tmp_path, text), "step", "dur_s") == [
        (401, 12.0),
        (402, 2.0),
        (403, 2.0),
        (404, 2.0),
        (405, 2.0),
    ]


def test_colours_are_seen_through(store: LocalStore, tmp_path: Path) -> None:
    text = (
        "[titan] 2026-08-20 14:03:12,000 - root - INFO - \x1b[31mstep: 401  \x1b[32mloss:  6.41230"
        "  \x1b[38;2;180;60;0mtps: 8,214\x1b[39m\n"
    )

    assert brief(told(store, tmp_path, text), "step") == [(401,)]


def test_of_ranks_that_write_the_same_lines_one_is_heard(store: LocalStore, tmp_path: Path) -> None:
    line = TITAN.format(clock="03:12,{ms}") + "step: {step}  loss:  6.41  tps: 8,214\n"
    text = "".join(
        f"[rank{rank}]:" + line.format(ms=100 + rank, step=step)
        for step in (401, 402)
        for rank in (2, 0, 1)
    )

    assert brief(told(store, tmp_path, text), "at", "step") == [
        ("14:03:12.102", 401),
        ("14:03:12.102", 402),
    ]


@pytest.mark.parametrize(("word", "durable"), [("sav", [401]), ("stag", [])])
def test_a_synchronous_save_of_torchtitan_is_durable_when_it_ends_and_a_staged_one_never_says_so(
    store: LocalStore, tmp_path: Path, word: str, durable: list[int]
) -> None:
    text = (
        TITAN.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214\n"
        + TITAN.format(clock="03:13,000") + f"{word.title()}ing the checkpoint.\n"
        + TITAN.format(clock="03:15,310")
        + f"Finished {word}ing the checkpoint in 2.31 seconds.\n"
    )  # fmt: skip

    events = told(store, tmp_path, text)

    assert [e["step"] for e in events if e["event"] == "ckpt.durable"] == durable
    assert [(e["event"], e["at"]) for e in events if e["phase"] == "ckpt_save"] == [
        ("phase.start", "14:03:13.000"),
        ("phase.end", "14:03:15.310"),
    ]
    assert not any(e["reports_durability"] for e in events)


# Hugging Face Trainer


@pytest.mark.parametrize(
    "printed",
    [
        "{'loss': 1.9321, 'grad_norm': 0.8812, 'learning_rate': 4.5e-05, 'epoch': 0.12}",
        "{'loss': '1.932', 'grad_norm': '0.8812', 'learning_rate': '4.5e-05', 'epoch': '0.12'}",
    ],
    ids=["v4", "v5"],
)
def test_the_trainers_dictionaries_tell_the_step_by_the_epoch_and_the_moment_by_a_collector(
    store: LocalStore, tmp_path: Path, printed: str
) -> None:
    text = (
        "2026-08-20T14:00:00Z ***** Running training *****\n"
        "2026-08-20T14:00:00Z   Num Epochs = 2\n"
        "2026-08-20T14:00:00Z   Total optimization steps = 5,000\n"
        f"2026-08-20T14:03:11.5Z {printed}\n"
    )

    events = told(store, tmp_path, text, ReadOptions())

    assert brief(events, "event", "at", "step") == [
        ("job.start", "14:00:00.000", None),
        ("step", "14:03:11.500", 300),
    ]


def test_a_save_of_the_trainer_lasts_as_far_as_its_files_are_told_and_is_never_called_durable(
    store: LocalStore, tmp_path: Path
) -> None:
    stamp = "[INFO|trainer.py:3503] 2026-08-20 14:20:{second},000 >> "
    text = (
        stamp.format(second="02") + "Saving model checkpoint to out/checkpoint-500\n"
        + stamp.format(second="03") + "Configuration saved in out/checkpoint-500/config.json\n"
        + stamp.format(second="09") + "Model weights saved in out/checkpoint-500/m.safetensors\n"
        + stamp.format(second="11") + "Model weights saved in out/other/m.safetensors\n"
    )  # fmt: skip

    events = told(store, tmp_path, text)

    assert brief(events, "event", "at", "dur_s", "step") == [
        ("step", "14:20:02.000", None, 500),
        ("phase", "14:20:03.000", 1.0, None),
        ("phase", "14:20:09.000", 6.0, None),
    ]
    assert not any(e["reports_durability"] for e in events)


def test_an_evaluation_of_the_trainer_ends_when_it_is_printed(
    store: LocalStore, tmp_path: Path
) -> None:
    text = "2026-08-20T14:03:11Z {'eval_loss': '1.71', 'eval_runtime': '12.4', 'epoch': '0.5'}\n"

    events = told(store, tmp_path, text, ReadOptions())

    assert brief(events, "phase", "at", "dur_s") == [("eval", "14:03:11.000", 12.4)]


# Lightning


def test_of_a_bar_drawn_over_and_over_the_last_state_counts(
    store: LocalStore, tmp_path: Path
) -> None:
    bar = "\rEpoch 3:  45%|####      | {n}/1000 [02:15<02:45,  3.32it/s, v_num=7]"
    text = f"2026-08-20T14:03:11Z {bar.format(n=449)}{bar.format(n=450)}\n"

    assert brief(told(store, tmp_path, text, ReadOptions()), "step", "at") == [
        (3450, "14:03:11.000")
    ]


# NeMo


def test_nemo_counts_from_0_and_its_steps_lie_between_the_saves(
    store: LocalStore, tmp_path: Path
) -> None:
    nemo = "[NeMo I 2026-08-20 14:20:21 nemo_logging:393] "
    text = (
        nemo + "Global Checkpoint Load : Rank : 0 : Start time : 1787234520.000s : "
        "Time spent in load_checkpoint: 10.000s\n"
        + nemo + "Global Checkpoint Save : Rank: 0 : Iteration: 399 : "
        "Start time: 1787234600.000s : Save duration: 19.612s\n"
        "Training epoch 0, iteration 400/4999 | lr: 3e-05 | global_step: 400 | loss: 7.1 |\n"
        + nemo + "Global Checkpoint Save : Rank: 0 : Iteration: 401 : "
        "Start time: 1787234627.612s : Save duration: 1.000s\n"
        + nemo + "Async checkpoint save for step 402 (/c/step=401.ckpt) finalized successfully.\n"
    )  # fmt: skip

    events = told(store, tmp_path, text)

    assert [(e["step"], e["dur_s"]) for e in events if e["event"] == "step"] == [
        (400, None),
        (401, 4.0),
        (402, 4.0),
    ]
    assert [(e["phase"], e["dur_s"]) for e in events if e["event"] == "phase"] == [
        ("restore", 10.0),
        ("ckpt_save", 19.612),
        ("ckpt_save", 1.0),
    ]
    assert [e["step"] for e in events if e["event"] == "ckpt.durable"] == [402]


# DeepSpeed


def test_a_checkpoint_of_deepspeed_is_durable_when_it_is_ready_not_when_it_is_about_to_be_saved(
    store: LocalStore, tmp_path: Path
) -> None:
    stamp = "[2026-08-20 14:20:{second},000] [INFO] [logging.py:128:log_dist] "
    text = (
        stamp.format(second="00") + "[Rank 0] step=400, skipped=0, lr=[2.4e-05]\n"
        + stamp.format(second="02")
        + "[Rank 0] [Torch] Checkpoint global_step400 is about to be saved!\n"
        + stamp.format(second="09") + "[Torch] Checkpoint global_step400 is ready now!\n"
        + stamp.format(second="29") + "[Rank 0] step=410, skipped=0, lr=[2.4e-05]\n"
    )  # fmt: skip

    events = told(store, tmp_path, text)

    assert [(e["at"], e["step"]) for e in events if e["event"] == "ckpt.durable"] == [
        ("14:20:09.000", 400)
    ]
    steps = [e for e in events if e["event"] == "step"]
    assert [e["step"] for e in steps] == list(range(400, 411))
    assert sum(e["dur_s"] for e in steps[1:]) == pytest.approx(29.0)


# vLLM


def test_a_line_of_vllm_is_a_metric_whose_year_comes_from_when_it_was_read_out(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        "INFO 12-31 23:59:59 [loggers.py:123] Engine 000: Avg prompt throughput: 812.4 tokens/s, "
        "Avg generation throughput: 1530.2 tokens/s, Running: 24 reqs, Waiting: 3 reqs, "
        "GPU KV cache usage: 41.7%, Prefix cache hit rate: 62.0%\n"
    )
    read_out = datetime(2026, 1, 2)  # noqa: DTZ001 -- moments are stored naive, in UTC
    options = ReadOptions(zone=ZoneInfo("UTC"), observed_at=read_out)

    (event,) = told(store, tmp_path, text, options)

    assert store.read("select ts from raw.job_events").item() == datetime(  # noqa: DTZ001
        2025, 12, 31, 23, 59, 59
    )
    assert json.loads(event["extra"]) == {
        "log": "vllm",
        "engine": 0,
        "prompt_tokens_per_s": 812.4,
        "generation_tokens_per_s": 1530.2,
        "running_requests": 24,
        "waiting_requests": 3,
        "kv_cache_ratio": pytest.approx(0.417),
    }


# failures

BLOCK = """\
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-08-20_14:31:05
  host      : node005
  rank      : 28 (local_rank: 4)
  exitcode  : 1 (pid: 51221)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-08-20_14:31:02
  host      : node004
  rank      : 27 (local_rank: 3)
  exitcode  : -9 (pid: 51220)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 51220
============================================================
"""


def test_of_a_torchrun_block_the_root_cause_is_the_failure(
    store: LocalStore, tmp_path: Path
) -> None:
    (event,) = told(store, tmp_path, BLOCK)

    assert (event["event"], event["at"], event["kind"]) == ("failure", "14:31:02.000", "sigkill")
    assert event["msg"] == "exit code -9 (SIGKILL) of rank 27 on node004"


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("E820 14:41:09.114302112", datetime(2026, 8, 20, 14, 41, 9, 114302)),  # noqa: DTZ001
        ("E1118 14:41:09.114302", datetime(2026, 11, 18, 14, 41, 9, 114302)),  # noqa: DTZ001
        ("E102 00:00:09.114302", datetime(2027, 1, 2, 0, 0, 9, 114302)),  # noqa: DTZ001
    ],
    ids=["month of one digit", "month of two", "after New Year"],
)
@pytest.mark.parametrize("label", ["[rank3]:", ""])
def test_a_watchdogs_stamp_has_no_year_and_an_unpadded_month(
    store: LocalStore, tmp_path: Path, label: str, stamp: str, at: datetime
) -> None:
    text = (
        ITERATION.format(second=20, step=3, ms=2000.0)
        + f"{label}[{stamp} ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=2635, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600024 milliseconds before timing out.\n"
    )

    told(store, tmp_path, text)

    ((found, kind, extra),) = store.read(
        "select ts, kind, extra::varchar from raw.job_events where event = 'failure'"
    ).rows()
    assert (found, kind) == (at, "nccl_timeout")
    assert json.loads(extra)["rank"] == 3
    assert json.loads(extra)["ran_ms"] == 600024


def test_a_watchdog_without_any_year_before_it_is_set_aside(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        "[rank3]:[E820 14:41:09.114302112 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=2635, OpType=ALLREDUCE, NumelIn=8, "
        "Timeout(ms)=600000) ran for 600024 milliseconds before timing out.\n"
        + ITERATION.format(second=20, step=3, ms=2000.0)
    )

    events = told(store, tmp_path, text)

    assert [e["event"] for e in events] == ["step"]
    assert "has no year" in store.read("select reason from raw.rejects").item()


@pytest.mark.parametrize("error", ["torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError"])
def test_want_of_memory_is_put_at_the_last_moment_told_and_says_so(
    store: LocalStore, tmp_path: Path, error: str
) -> None:
    text = (
        ITERATION.format(second=20, step=3, ms=2000.0)
        + f"[rank5]: {error}: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 1.58 GiB is free.\n"
    )

    failure = next(e for e in told(store, tmp_path, text) if e["event"] == "failure")

    assert (failure["kind"], failure["at"]) == ("oom", "14:03:20.500")
    assert json.loads(failure["extra"]) == {
        "log": "cuda-oom",
        "rank": 5,
        "at": "the last moment told before",
    }


def test_restart_cycles_of_nvrx_end_one_life_and_begin_the_next(
    store: LocalStore, tmp_path: Path
) -> None:
    line = "  - Cycle: {} Event: {} Node: {} Rank: {} Time: 2026-08-20 14:31:{:02}.118 UTC\n"
    text = (
        line.format(0, "worker_start_started", "node001", 0, 0)
        + line.format(0, "worker_start_started", "node002", 8, 1)
        + line.format(1, "failure_detected", "node004", 27, 20)
        + line.format(1, "failure_detected", "node001", 0, 21)
        + line.format(1, "worker_terminated", "node001", 0, 22)
        + line.format(1, "worker_start_started", "node001", 0, 30)
    )

    events = told(store, tmp_path, text, ReadOptions())

    assert brief(events, "event", "at") == [
        ("job.start", "14:31:00.118"),
        ("failure", "14:31:20.118"),
        ("job.start", "14:31:30.118"),
    ]
    assert events[1]["msg"] == "NVRx cycle 1: failure detected on node004, rank 27"


@pytest.mark.parametrize(
    ("why", "kind"),
    [("", "other"), (" DUE TO TIME LIMIT", "other"), (" DUE TO PREEMPTION", "preempted")],
)
def test_the_schedulers_word_ends_the_life(
    store: LocalStore, tmp_path: Path, why: str, kind: str
) -> None:
    text = (
        f"slurmstepd: error: *** JOB 19 ON r6i4n5 CANCELLED AT 2026-08-20T14:52:36{why} ***\n"
        f"slurmstepd: error: *** STEP 19.0 ON r6i4n5 CANCELLED AT 2026-08-20T14:52:36{why} ***\n"
    )

    events = told(store, tmp_path, text)

    assert brief(events, "event", "kind") == [("failure", kind), ("job.end", None)]
