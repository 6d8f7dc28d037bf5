"""What an ingest says of the files that it left out."""

import pytest

from goodput_app.cli.skipped_files import skipped_files

ZONE = "carries no offset from UTC. Name its time zone with --timezone (such as Europe/Berlin)."


REFUSED = [f"logs/{i}.txt: time 2026-11-20T11:45:{i:02} {ZONE}" for i in range(5)]


@pytest.mark.parametrize(
    ("refused", "unknown", "asked_for", "sentences"),
    [
        (
            [*REFUSED, "x.txt: it is cut at line 7."],
            [],
            "auto",
            [f"skipped 5 files: time 2026-11-20T11:45:00 {ZONE} logs/0.txt, logs/1.txt, "
             "logs/2.txt ...", "skipped: x.txt: it is cut at line 7."],
        ),
        (["nothing there"], [], "auto", ["skipped: nothing there"]),
        ([], [], "auto", []),
        ([], ["a"], "auto", ["1 file of no known format skipped: a"]),
        ([], ["a", "b", "c"], "auto", ["3 files of no known format skipped: a, b, c"]),
        ([], ["a", "b", "c", "d"], "auto", ["4 files of no known format skipped: a, b, c ..."]),
        ([], ["a", "b"], "mlperf", ["2 files of another format than mlperf skipped: a, b"]),
    ],
)  # fmt: skip
def test_files_with_one_reason_are_one_sentence(refused, unknown, asked_for, sentences):
    assert list(skipped_files(refused, unknown, asked_for)) == sentences
