"""Names come from people and machines: none of them breaks a run, moves a cursor or hides a row."""

import io
import json
import os
import unicodedata

import polars as pl
import pytest
from tests.app.command_line import run
from tests.ingest.job_log_lines import ITERATION as LINE

from goodput_app.cli import output

START = 1_790_000_000
NAMES = {
    "colours": "\x1b[31mred\x1b[0m\x1b]0;title\x07", "lines": "one\ntwo\r\nthree\x0b\x85\u2028end",
    "nothing": "a\x00b", "backwards": "\u202egnp.exe\u2066", "long": "x" * 10_000,
    "markup": "[bold red]x[/] [link=http://e.vil]y[/link] <b>&amp;",
    "quotes": "'; drop table raw.job_runs; -- \" ` \\", "formula": "=1+1|' /C calc'!A0",
    "empty-looking": "\u200b\u00a0 ", "paths": "../../etc/passwd", "wide": "漢字👩‍👩‍👧 e\u0301",
    "jinja": "{{7*7}} %s %(a)s {0}",
}  # fmt: skip


ITERATION = LINE.format(second=11, step=3, ms=2000.0)


def accounting(name, first_job):
    """Return `sacct --json` of a job whose every name is this one, and of a plain job."""

    def record(job, text):
        gpus = [{"type": "gres", "name": "gpu", "id": 1001, "count": 1}]
        return {
            "time": {"submission": START, "eligible": START, "start": START, "end": START + 100,
                     "elapsed": 100, "suspended": 0},
            "account": text, "user": text, "cluster": "lab", "comment": {"job": text},
            "association": {"account": text, "cluster": "lab", "user": text},
            "job_id": job, "name": text, "nodes": "node1", "partition": text, "qos": text,
            "required": {"CPUs": 1}, "reservation": {"id": 0, "name": text},
            "state": {"current": ["COMPLETED"], "reason": text},
            "tres": {"allocated": gpus, "requested": gpus},
        }  # fmt: skip

    return json.dumps(
        {"jobs": [record(first_job + 1, name), record(first_job + 2, "plain")], "meta": {}}
    )


def events(name):
    steps = [
        {"v": 1, "ts": START + t, "event": "step", "step": t // 10, "dur_s": 10, "run_id": name,
         "rank": 0, "host": name, "cluster": name, "msg": name, "phase": f"custom:{name}"}
        for t in (10, 20)
    ]  # fmt: skip
    return "".join(json.dumps(event) + "\n" for event in steps)


def is_plain(text):
    """Say whether text moves no cursor, hides nothing and turns no direction."""
    return all(
        c == "\n" or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in text
    )


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Give a database of jobs of all these names: two a name, of which one has a plain name."""
    folder = tmp_path_factory.mktemp("named")
    for number, name in enumerate(NAMES.values()):
        (folder / f"sacct-{number}.json").write_text(accounting(name, 10 * number))
        (folder / f"events-{number}.jsonl").write_text(events(name))
    db = str(folder / "fleet.duckdb")

    read = run("ingest", "auto", str(folder), "--db", db)

    assert read.exit_code == 0
    assert is_plain(read.output)
    return db


def test_every_name_has_its_time_in_the_ledger(named):
    held = run("ledger", "--by", "team,user,run,category", "--db", named, "--format", "json")

    rows = json.loads(held.stdout)
    assert sum(row["gpu_ms"] for row in rows) == 200_000 * len(NAMES)
    assert len({row["team"] for row in rows}) == len(NAMES) + 1


@pytest.mark.parametrize(
    "words",
    [
        ("ledger", "--by", "team,user,run,node,category"), ("runs",), ("gaps",), ("check",),
        ("show", "raw.rejects"), ("show", "raw.job_runs"), ("show", "marts.data_quality"),
        ("show", "state.ingested"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_name_of_any_kind_goes_through_to_every_answer(named, words):
    answer = run(*words, "--db", named)

    assert answer.exit_code == 0, answer.output
    assert is_plain(answer.output)
    assert max(map(len, answer.output.splitlines()), default=0) < 4_097


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_of_any_kind_can_be_asked_for(named, name):
    asked = run("ledger", "--team", name.replace("\x00", ""), "--db", named)

    assert asked.exit_code in (0, 1)  # sources trim names: this one may be known as another
    assert is_plain(asked.output)


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
            out.write(events(f"r{number}") + "no event\n")
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

    output.write(pl.DataFrame({"name": list(NAMES.values())}), "csv")
    terminal.flush()

    assert is_plain(written.getvalue().decode())
