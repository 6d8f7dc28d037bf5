"""What lines of Megatron-LM become."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.ingest.job_log_lines import ITERATION, brief, parsed

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore


def test_a_megatron_line_stands_for_all_iterations_since_the_last(
    store: LocalStore, tmp_path: Path
) -> None:
    text = ITERATION.format(second=10, step=1, ms=1000.0) + ITERATION.format(
        second=16, step=4, ms=2000.0
    )

    events = parsed(store, tmp_path, text)

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

    assert brief(parsed(store, tmp_path, text), "step", "dur_s") == [(1, 2.0), (2, 2.0), (3, 2.0)]


def test_a_first_line_far_on_without_a_loaded_checkpoint_is_not_taken_back_to_the_first_iteration(
    store: LocalStore, tmp_path: Path
) -> None:
    events = parsed(store, tmp_path, ITERATION.format(second=20, step=4000, ms=2000.0))

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

    assert brief(parsed(store, tmp_path, text), "at", "step", "dur_s") == [
        ("14:00:05.000", 1, 5.0),
        ("14:00:07.000", 2, 2.001),
    ]


def test_saving_is_not_saved(store: LocalStore, tmp_path: Path) -> None:
    saving = "[2026-08-20 14:03:10.6] saving checkpoint at iteration      10 to /ckpt in torch\n"
    saved = (
        "  [2026-08-20 14:03:30.6] successfully saved checkpoint from iteration      10 to /ckpt\n"
    )

    begun = parsed(store, tmp_path, saving)
    done = parsed(store, tmp_path, saving + saved)

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

    events = parsed(store, tmp_path, text)

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

    assert brief(parsed(store, tmp_path, text), "event", "step") == [("ckpt.durable", 10)]


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

    steps = [e for e in parsed(store, tmp_path, text) if e["event"] == "step"]

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

    assert brief(parsed(store, tmp_path, text), "event", "at") == [("job.start", "14:00:00.000")]


def test_iterations_of_older_releases_have_neither_stamp_nor_samples(
    store: LocalStore, tmp_path: Path
) -> None:
    """The steps follow the start of training that is printed."""
    text = "[before the start of training step] datetime: 2020-08-20 14:02:20 \n" + "".join(
        f" iteration {step:8}/   50000 | elapsed time per iteration (ms): 2000.0 | learning rate"
        " 1.500E-04 | lm loss 1.038E+01 | loss scale 65536.0 |\n"
        for step in (1, 2, 3)
    )

    events = [event for event in parsed(store, tmp_path, text) if event["event"] == "step"]

    assert brief(events, "step", "at", "dur_s") == [
        (1, "14:02:22.000", 2.0),
        (2, "14:02:24.000", 2.0),
        (3, "14:02:26.000", 2.0),
    ]


def test_iterations_with_a_stamp_and_without_samples_end_when_they_say(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        " [2020-08-20 14:03:11] iteration      120/   50000 | elapsed time per iteration (ms): "
        "2000.0 | learning rate: 1.500E-04 | lm loss: 1.038E+01 |\n"
    )

    assert brief(parsed(store, tmp_path, text), "event", "step", "at", "dur_s") == [
        ("step", 120, "14:03:11.000", 2.0)
    ]
