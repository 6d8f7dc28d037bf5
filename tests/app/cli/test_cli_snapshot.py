"""`goodput snapshot`: a line of JSON, to a file or to standard output, and what reads it."""

import json
import os

from tests.app.command_line import run

from goodput_ingest.sources.node_snapshot.source import NodeSnapshot
from goodput_ingest.sources.registry import recognise


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


def test_it_describes_another_process():
    row = json.loads(run("snapshot", "--pid", str(os.getpid())).stdout)

    assert row["settings"]["process.cpus"]


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path):
    result = run("snapshot", "--out", str(tmp_path / "no folder" / "nodes.json"))

    assert result.exit_code == 2
    assert "nodes.json': No such file or directory" in result.stderr
