"""`goodput profile` of a log, `snapshot` of a node, and `serving` of engines."""

import json
import os

import pytest
from tests.app.command_line import run
from tests.queries.serving.load import Engine, counters
from tests.tables import each

from goodput_ingest.sources.node_snapshot.source import NodeSnapshot
from goodput_ingest.sources.registry import recognise

LOG = """\
starting
2026-04-01 14:06:36 | INFO | step 1/15 | step-time 30.5 sec | cross-entropy-loss 2.66
2026-04-01 14:07:05 | INFO | step 2/15 | step-time 29.0 sec | cross-entropy-loss 2.59
2026-04-01 14:07:34 | INFO | step 3/15 | step-time 29.0 sec | cross-entropy-loss 2.65
2026-04-01 14:07:40 | INFO | Saved checkpoint for step 3
"""


def test_a_draft_is_a_profile_that_reads_the_log(tmp_path):
    log, profile = tmp_path / "mine.log", tmp_path / "mine.toml"
    log.write_text(LOG)
    profile.write_text(run("profile", "draft", str(log)).stdout)

    tried = run("profile", "try", str(log), str(profile), "--timezone", "UTC", "--format", "json")

    assert tried.stderr == "5 lines: step 3, ckpt.durable 1; 1 say nothing.\n"
    rows = json.loads(tried.stdout)
    assert [
        (row["line"], row["event"], row["step"], row["dur_s"], row["loss"]) for row in rows
    ] == [
        (2, "step", 1, 30.5, 2.66), (3, "step", 2, 29.0, 2.59), (4, "step", 3, 29.0, 2.65),
        (5, "ckpt.durable", 3, None, None),
    ]  # fmt: skip


@each(
    ("megatron", "nothing of mine.log is read.\n", "2,not read,"),
    ("megatrom", "there is no log format 'megatrom'; known: megatron, torchtitan, ", ""),
)
def test_a_log_that_is_not_read_shows_lines_like_steps_or_the_formats(here, known, said, shown):
    (here / "mine.log").write_text("hello\nglobal step 7: loss = 2.5 (0.4 sec/step)\n")

    tried = run("profile", "try", "mine.log", known, "--format", "csv")

    assert tried.exit_code == 1
    assert said in tried.stderr
    assert shown in tried.stdout


def test_snapshots_are_appended_to_a_file_that_is_recognised(tmp_path):
    out = tmp_path / "nodes.json"

    codes = [
        run("snapshot", "--node", node, "--name", "llm", "--out", str(out)).exit_code
        for node in ("n1", "n2")
    ]

    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert codes == [0, 0]
    assert [(row["node"], row["run_id"]) for row in rows] == [("n1", "llm"), ("n2", "llm")]
    assert recognise(out) is NodeSnapshot
    assert json.loads(run("snapshot", "--pid", str(os.getpid())).stdout)["settings"]["process.cpus"]


@each(
    (("--out", "no folder/nodes.json"), 2, "nodes.json': No such file or directory"),
    (("--pid", "4194305"), 1, "there is no process 4194305 on this machine.\n"),
)
def test_what_cannot_be_described_or_written_is_a_sentence(here, arguments, code, said):
    result = run("snapshot", *arguments)
    assert (result.exit_code, result.stdout, list(here.iterdir())) == (code, "", [])
    assert said in result.stderr


@pytest.fixture(scope="module")
def database(made):
    """Give the database of an engine with a hundred requests."""
    engine = Engine(made)
    engine.samples(counters({"generation_tokens": (2, 2)}, {"requests_running": (1, 1)}))
    engine.histogram("ttft_s", [(70.0 + n, 0.3) for n in range(100)], (0.0, 60.0, 3600.0))
    made.node("n1", 1)
    return made.built()


def asked(path, *arguments):
    result = run("serving", *arguments, "--db", str(path), "--format", "json")
    assert result.exit_code == 0, result.output
    return result


def test_models_are_listed_with_their_tokens_and_without_rows_it_says_what_to_configure(database):
    row, of_role = json.loads(asked(database).stdout)
    without = asked(database, "objectives")

    assert (row["model"], row["role"], row["output_tokens"]) == ("llama", None, 14400)
    assert of_role["role"] == "both"
    assert json.loads(without.stdout) == []
    assert "[[serving.objectives]] in goodput.toml" in without.stderr
