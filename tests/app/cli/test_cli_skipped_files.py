"""What an ingest says of the files that it left out."""

import pytest

from goodput_app.cli.skipped_files import skipped_files

ZONE = "carries no offset from UTC. Name its time zone with --timezone (such as Europe/Berlin)."


REFUSED = [f"logs/{i}.txt: time 2026-11-20T11:45:{i:02} {ZONE}" for i in range(5)]


@pytest.mark.parametrize(
    ("refused", "unknown", "sentences"),
    [
        (
            [*REFUSED, "x.txt: it is cut at line 7."],
            [],
            [f"skipped 5 files: time 2026-11-20T11:45:00 {ZONE} logs/0.txt, logs/1.txt, "
             "logs/2.txt ...", "skipped: x.txt: it is cut at line 7."],
        ),
        (["nothing there"], [], ["skipped: nothing there"]),
        ([], [], []),
        ([], ["a"], ["1 file of no known format skipped: a"]),
        ([], ["a", "b", "c"], ["3 files of no known format skipped: a, b, c"]),
        ([], ["a", "b", "c", "d"], ["4 files of no known format skipped: a, b, c ..."]),
    ],
)  # fmt: skip
def test_files_with_one_reason_are_one_sentence(refused, unknown, sentences):
    assert list(skipped_files(refused, unknown)) == sentences


def test_files_of_another_format_than_the_one_asked_for_are_counted():
    assert list(skipped_files([], ["a", "b"], "mlperf")) == [
        "2 files of another format than mlperf skipped: a, b"
    ]
