"""Xids from the gauge that holds the last one."""

from tests.ingest.gpu_lines import GPU, START, power, rows

from goodput_ingest.gpu_metrics import Memory


def xids(lines, memory=None):
    return [
        ((row["ts"] - START).total_seconds(), row["code"], row["ts_precision"])
        for row in rows(lines, memory).get("gpu_events", [])
    ]


def xid(seconds, code, **more):
    return ("DCGM_FI_DEV_XID_ERRORS", {**GPU, **more}, seconds, code)


def test_the_latch_is_remembered_from_poll_to_poll():
    memory = Memory()

    polls = [xids([xid(s, code)], memory) for s, code in ((0, 0), (30, 79), (60, 79), (90, 0))]
    again = xids([xid(120, 79)], memory)

    assert polls == [[], [(30, 79, "approximate")], [], []]
    assert again == [(120, 79, "approximate")]


def test_readings_that_are_read_again_make_no_event_of_a_code_that_is_over():
    """Each poll of a server begins some minutes before the end of the one before it."""
    memory = Memory()
    reported = [xid(0, 0), xid(30, 94), xid(60, 94), xid(90, 31), xid(120, 31)]

    assert xids(reported, memory) == [(30, 94, "approximate"), (90, 31, "approximate")]
    assert xids(reported[2:], memory) == []
    assert xids([*reported[3:], xid(150, 79)], memory) == [(150, 79, "approximate")]


def test_an_xid_reported_in_an_answer_of_its_own_is_an_event_of_its_time():
    """Saved answers have one metric each, so that the other readings are known before."""
    memory = Memory()
    rows([power(seconds) for seconds in (0, 30, 60, 90)], memory)

    found = xids([xid(0, 0), xid(30, 0), xid(60, 79), xid(90, 79)], memory)

    assert found == [(60, 79, "approximate")]


def test_a_latch_read_after_later_readings_of_its_gpu_was_not_watched_before():
    memory = Memory()
    rows([power(seconds) for seconds in (0, 30, 60)], memory)

    assert xids([xid(0, 79), xid(30, 79)], memory) == [(0, 79, "at_or_before")]


def test_an_xid_on_a_mig_gpu_is_one_event_of_the_gpu():
    memory = Memory()
    instances = [{"GPU_I_ID": i, "GPU_I_PROFILE": "1g.10gb"} for i in "12"]

    polls = [
        xids([xid(seconds, code, **one_set) for one_set in instances], memory)
        for seconds, code in ((0, 0), (30, 79))
    ]

    assert polls == [[], [(30, 79, "approximate")]]
