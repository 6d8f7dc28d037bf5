"""Whose GPU it was by the labels of its series."""

from tests.ingest.gpu_lines import START, power, rows

from goodput_ingest.gpu_metrics import Memory


def owned(lines, memory=None):
    return [
        (
            row["owner"],
            (row["first_seen_at"] - START).total_seconds(),
            (row["last_seen_at"] - START).total_seconds(),
        )
        for row in rows(lines, memory).get("gpu_owners", [])
    ]


def test_an_owner_goes_on_from_poll_to_poll_as_one_stretch():
    memory = Memory()

    polls = [owned([power(s, hpc_job="7")], memory) for s in (0, 30, 60)]
    other_owner = owned([power(90, hpc_job="8")], memory)
    again = owned([power(120, hpc_job="7")], memory)

    assert polls == [[("7", 0, 0)], [("7", 0, 30)], [("7", 0, 60)]]
    assert other_owner == [("8", 90, 90)]
    assert again == [("7", 120, 120)]


def test_readings_that_are_read_again_report_the_same_stretches():
    """Each poll of a server begins some minutes before the end of the one before it."""
    memory = Memory()
    lines = [power(s, hpc_job="7" if s < 90 else "8") for s in range(0, 300, 30)]

    assert owned(lines[:6], memory) == [("7", 0, 60), ("8", 90, 150)]
    assert owned(lines[1:8], memory) == [("7", 0, 60), ("8", 90, 210)]
    assert owned(lines[2:], memory) == [("7", 0, 60), ("8", 90, 270)]


def test_an_outage_of_ours_ends_a_stretch():
    memory = Memory()

    owned([power(0, hpc_job="7"), power(30, hpc_job="7")], memory)

    assert owned([power(3600, hpc_job="7")], memory) == [("7", 3600, 3600)]
