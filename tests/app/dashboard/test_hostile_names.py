"""Names come from people and machines: none of them breaks a run, moves a cursor or hides a row."""

import io
import json
import os
import shutil
import unicodedata

import polars as pl
import pytest
from tests.app.command_line import run
from tests.hostile_names import ALL_IN_ONE, LONG, PAYLOADS
from tests.ingest.job_log_lines import ITERATION as LINE

from goodput_app.cli import output

ITERATION = LINE.format(second=11, step=3, ms=2000.0)
STEP = {"v": 1, "ts": 1_790_000_010, "event": "step", "step": 1, "dur_s": 10, "rank": 0}


def is_plain(text):
    """Say whether text moves no cursor, hides nothing and turns no direction."""
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return all(c == "\n" or unicodedata.category(c) not in hidden for c in text)


@pytest.fixture(scope="module")
def named(two_teams, tmp_path_factory):
    """Give a database with all these names, loaded past the sources, which have golden cases."""
    return str(shutil.copyfile(two_teams, tmp_path_factory.mktemp("named") / "fleet.duckdb"))


@pytest.mark.parametrize(
    "words",
    [("ledger", "--by", "team,user,run,node,category"), ("runs",), ("gaps",), ("findings",),
     ("show", "raw.rejects"), ("show", "raw.job_runs"), ("show", "marts.data_quality"),
     ("show", "state.ingested"),
     *(("ledger", "--team", name.replace("\x00", "")) for name in (ALL_IN_ONE, f"evil-{LONG}"))],
    ids=lambda words: " ".join(words)[:40],
)  # fmt: skip
def test_a_name_of_any_kind_goes_through_to_every_answer_and_can_be_asked_for(named, words):
    answer = run(*words, "--db", named)
    assert answer.exit_code == 0 or "The ledger knows no team" in answer.stderr, answer.output
    assert is_plain(answer.output)
    assert max(map(len, answer.output.splitlines()), default=0) < 4_097


FILES = [
    *(b"\x1b[2Jx.jsonl", b"a\nb.jsonl", "\u202eljsn.jsonl".encode(), b"\xff\xfe.jsonl"),
    *(b"[red]x[x].jsonl", b"-x.jsonl", b"x" * 240 + b".jsonl", b"'\"; --.jsonl", b"%s{0}.jsonl"),
]


def test_files_of_any_name_are_read_named_and_forgotten(tmp_path):
    db = str(tmp_path / "fleet.duckdb")
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, file in enumerate(FILES):
        path = os.path.join(os.fsencode(folder), file)  # noqa: PTH118 -- bytes
        with open(path, "w") as out:  # noqa: PTH123
            step = STEP | {"run_id": f"r{number}", "host": "n1", "cluster": "c"}
            out.write(json.dumps(step) + "\nno event\n")
        with open(path + b".log", "w") as out:  # noqa: PTH123
            out.write(ITERATION.replace("7.1", f"7.{number}"))

    read = run("ingest", "auto", str(folder), "--timezone", "UTC", "--db", db)
    shown = run("show", "raw.rejects", "--db", db)
    stored = json.loads(run("show", "state.ingested", "--db", db, "--format", "json").stdout)
    origins = {row["origin"] for row in stored}

    assert (read.exit_code, shown.exit_code) == (0, 0), read.output
    assert is_plain(read.output + shown.output)
    assert shown.stdout.count("logs/") == len(FILES)
    assert "no line has the log format" not in read.output
    assert len(origins) == 2 * len(FILES)
    for origin in sorted(origins)[::2]:
        gone = run("forget", "--db", db, "--", origin)
        assert gone.exit_code == 0, gone.output
        assert is_plain(gone.output)


def test_csv_on_a_terminal_moves_no_cursor(monkeypatch):
    written = io.BytesIO()
    terminal = io.TextIOWrapper(written)
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout", terminal)

    output.write(pl.DataFrame({"name": list(PAYLOADS.values())}), "csv")
    terminal.flush()

    assert is_plain(written.getvalue().decode())
