"""Names come from people and machines: none of them breaks a run, moves a cursor or hides a row."""

from __future__ import annotations

import csv
import io
import json
import os
import unicodedata
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner, Result

from goodput_app.cli import main, output

if TYPE_CHECKING:
    from pathlib import Path

START = 1_790_000_000
NAMES = {
    "colours": "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "lines": "one\ntwo\r\nthree\x0b\x85\u2028end",
    "nothing": "a\x00b",
    "backwards": "\u202egnp.exe\u2066",
    "long": "x" * 10_000,
    "markup": "[bold red]x[/] [link=http://e.vil]y[/link] <b>&amp;",
    "quotes": "'; drop table raw.job_runs; -- \" ` \\",
    "formula": "=1+1|' /C calc'!A0",
    "empty-looking": "\u200b\u00a0 ",
    "paths": "../../etc/passwd",
    "wide": "漢字👩‍👩‍👧 e\u0301",
    "jinja": "{{7*7}} %s %(a)s {0}",
}


ITERATION = (
    " [2026-08-20 14:03:11.500000] iteration        3/   50000 | consumed samples: 512 |"
    " elapsed time per iteration (ms): 2000.0 | lm loss: 7.1E+00 | \n"
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.main, list(arguments), catch_exceptions=False)


def accounting(name: str) -> str:
    """Return `sacct --json` of a job whose every name is this one, and of a plain job."""

    def record(job: int, text: str) -> dict[str, object]:
        gpus = [{"type": "gres", "name": "gpu", "id": 1001, "count": 1}]
        return {
            "time": {
                "submission": START, "eligible": START, "start": START, "end": START + 100,
                "elapsed": 100, "suspended": 0,
            },
            "account": text, "user": text, "cluster": "lab", "comment": {"job": text},
            "association": {"account": text, "cluster": "lab", "user": text},
            "job_id": job, "name": text, "nodes": "node1", "partition": text, "qos": text,
            "required": {"CPUs": 1}, "reservation": {"id": 0, "name": text},
            "state": {"current": ["COMPLETED"], "reason": text},
            "tres": {"allocated": gpus, "requested": gpus},
        }  # fmt: skip

    return json.dumps({"jobs": [record(1, name), record(2, "plain")], "meta": {}})


def events(name: str) -> str:
    told = [
        {"v": 1, "ts": START + t, "event": "step", "step": t // 10, "dur_s": 10, "run_id": name,
         "rank": 0, "host": name, "cluster": name, "msg": name, "phase": f"custom:{name}"}
        for t in (10, 20)
    ]  # fmt: skip
    return "".join(json.dumps(event) + "\n" for event in told)


def is_plain(text: str) -> bool:
    """Say whether text moves no cursor, hides nothing and turns no direction."""
    return all(
        c == "\n" or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in text
    )


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_of_any_kind_goes_through_to_every_answer(tmp_path: Path, name: str) -> None:
    db = str(tmp_path / "fleet.duckdb")
    (tmp_path / "sacct.json").write_text(accounting(name))
    (tmp_path / "events.jsonl").write_text(events(name))

    read = run("ingest", "auto", str(tmp_path), "--db", db)
    held = run("ledger", "--by", "team,user,run,category", "--db", db, "--format", "json")
    answers = [
        run(*words, "--db", db)
        for words in (
            ("ledger", "--by", "team,user,run,node,category"), ("runs",), ("gaps",), ("check",),
            ("show", "raw.rejects"), ("show", "raw.job_runs"), ("show", "marts.data_quality"),
            ("show", "raw.ingested"),
        )
    ]  # fmt: skip

    assert read.exit_code == 0
    assert is_plain(read.output)
    rows = json.loads(held.stdout)
    assert sum(row["gpu_ms"] for row in rows) == 200_000
    assert len({row["team"] for row in rows}) == 2
    for answer in answers:
        assert answer.exit_code == 0, answer.output
        assert is_plain(answer.output)
        assert max(map(len, answer.output.splitlines()), default=0) < 4_097
    for form in ("json", "csv"):
        told = run("show", "raw.job_runs", "--db", db, "--format", form).stdout
        assert not any(c in told for c in "\u202e\u2066")
    asked = run("ledger", "--team", name.replace("\x00", ""), "--db", db)
    assert asked.exit_code in (0, 1)  # sources trim names: this one may be known as another
    assert is_plain(asked.output)
    table = run("show", "raw.job_runs", "--db", db, "--format", "csv").stdout
    assert len(list(csv.DictReader(io.StringIO(table)))) == 2


FILES = [
    *(b"\x1b[2Jx.jsonl", b"a\nb.jsonl", "\u202eljsn.jsonl".encode(), b"\xff\xfe.jsonl"),
    *(b"[red]x[x].jsonl", b"-x.jsonl", b"x" * 240 + b".jsonl", b"'\"; --.jsonl", b"%s{0}.jsonl"),
]


@pytest.mark.parametrize("file", FILES, ids=range(len(FILES)))
def test_a_file_of_any_name_is_read_named_and_forgotten(tmp_path: Path, file: bytes) -> None:
    db = str(tmp_path / "fleet.duckdb")
    folder = tmp_path / "logs"
    folder.mkdir()
    path = os.path.join(os.fsencode(folder), file)  # noqa: PTH118 -- bytes
    with open(path, "w") as out:  # noqa: PTH123
        out.write(events("r") + "no event\n")
    with open(path + b".log", "w") as out:  # noqa: PTH123
        out.write(ITERATION)

    read = run("ingest", "auto", str(folder), "--timezone", "UTC", "--db", db)
    shown = run("show", "raw.rejects", "--db", db)
    origin = json.loads(run("show", "raw.ingested", "--db", db, "--format", "json").stdout)[0]
    gone = run("forget", "--db", db, "--", origin["origin"])

    assert (read.exit_code, shown.exit_code, gone.exit_code) == (0, 0, 0), read.output
    assert is_plain(read.output + shown.output + gone.output)
    assert "logs/" in shown.stdout
    assert "no line has the log format" not in read.output


def test_csv_on_a_terminal_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    terminal = io.TextIOWrapper(written)
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout", terminal)

    output.write(pl.DataFrame({"name": list(NAMES.values())}), "csv")
    terminal.flush()

    assert is_plain(written.getvalue().decode())
