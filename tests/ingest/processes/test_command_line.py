"""Command lines as they are stored: what a run is called, and no secrets."""

import pytest

from goodput_ingest.processes.command_line import (
    COMMAND_MAX_CHARS,
    NAME_MAX_CHARS,
    short_name,
    without_secrets,
)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/usr/bin/python3", "-u", "/home/ann/exp/train.py", "--lr", "1"], "train.py"),
        (["python", "-m", "torch.distributed.run", "t.py"], "torch.distributed.run"),
        (["torchrun", "--config=old.py", "train.py"], "train.py"),
        (["bash", "run.sh"], "run.sh"),
        (["python3.11", "-c", "print(1)", "x.py"], "python3.11"),
        (["/opt/sim/bin/md_run", "-m", "input.txt"], "md_run"),
        (["./" + "x" * 5000], "x" * NAME_MAX_CHARS),
        ([], ""),
    ],
)  # fmt: skip
def test_a_command_is_called_by_its_script_or_program(arguments, name):
    assert short_name(arguments) == name


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["t.py", "--token", "abc", "--lr", "1"], "t.py --token *** --lr 1"),
        (["t.py", "--password=ab c", "x"], "t.py --password=*** c x"),
        (["t.py", "--password", "ab c"], "t.py --password ***"),
        (["t.py", "--hf_token=abc", "--my-api-key", "k"], "t.py --hf_token=*** --my-api-key ***"),
        (["env", "WANDB_KEY=abc", "A=b", "lr=0.1"], "env WANDB_KEY=*** A=*** lr=0.1"),
        (["sh", "-c", "t.py --secret abc; A=b u"], "sh -c t.py --secret ***; A=*** u"),
        (["t.py", '{"api_key": "abc", "lr": 1}'], 't.py {"api_key": ***, "lr": 1}'),
        (["curl", "-H", "Authorization: Bearer abc"], "curl -H Authorization: Bearer ***"),
        (["t.py", "s3://ann:abc@host/x"], "t.py s3://***@host/x"),
        (["t.py", "http://h/?a=1&token=abc"], "t.py http://h/?a=1&token=***"),
        (["t.py", "hf_" + "a" * 34], "t.py ***"),
        (
            ["t.py", "--max-tokens", "5", "--tokenizer=x", "--monkey", "m", "--auth", "-v"],
            "t.py --max-tokens 5 --tokenizer=x --monkey m --auth -v",
        ),
        (["t.py", "a\nb\x1b[31m"], "t.py a b\x1b[31m"),  # stored without control characters
    ],
)  # fmt: skip
def test_values_that_look_like_secrets_are_not_stored(arguments, shown):
    assert without_secrets(arguments) == shown


def test_a_long_command_line_is_cut():
    assert len(without_secrets(["t.py", "-" + "a-." * 100_000 + "token", "x" * 100_000])) == (
        COMMAND_MAX_CHARS
    )
