"""When something is sent: at a time of day, and again where that is worth it."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from goodput_messages.retries import PAUSE_MAX_S, PAUSES_S, NotSentError, send_with_retry
from goodput_messages.schedule import last_time, next_time
from goodput_queries.errors import GoodputError


def sending(*answers, is_over=False):
    """Return what came of sending to a server with these answers, and how long was waited.

    is_over: whether a pause ends it
    """
    left, pauses = iter(answers), []

    def channel(_had):
        answer = next(left)
        if isinstance(answer, GoodputError):
            raise answer
        return answer

    def wait(seconds):
        pauses.append(seconds)
        return is_over

    return send_with_retry(channel, (), wait), pauses


def away(wait_s=0.0):
    return NotSentError("away.", is_transient=True, wait_s=wait_s)


@pytest.mark.parametrize(
    ("answers", "attempts", "error", "is_for_later"),
    [
        pytest.param([away(), away(), ("a",)], 3, None, False, id="away until it takes it"),
        pytest.param([away()] * 9, len(PAUSES_S) + 1, "away.", True, id="stays away"),
        pytest.param([NotSentError("no.")], 1, "no.", False, id="refuses for good"),
    ],
)
def test_what_is_away_is_asked_again_for_a_while(answers, attempts, error, is_for_later):
    sent, pauses = sending(*answers)

    assert (sent.attempts, sent.is_for_later) == (attempts, is_for_later)
    assert (None if sent.error is None else str(sent.error)) == error
    assert pauses == list(PAUSES_S[: attempts - 1])
    assert sent.recipients == (() if error else ("a",))


@pytest.mark.parametrize(("asked_s", "waited_s"), [(5.0, 5.0), (1.0, 2.0), (86_400.0, PAUSE_MAX_S)])
def test_a_server_may_ask_for_a_longer_pause_within_reason(asked_s, waited_s):
    assert sending(away(asked_s), ())[1] == [waited_s]


def test_the_end_of_the_server_ends_the_waiting():
    sent, pauses = sending(away(), (), is_over=True)

    assert (sent.attempts, len(pauses)) == (1, 1)
    assert sent.error is not None


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "at", "last", "following"),
    [
        ("2026-11-20T06:00", "07:00", "2026-11-20T06:00", "2026-11-21T06:00"),
        ("2026-11-20T05:59", "07:00", "2026-11-19T06:00", "2026-11-20T06:00"),
        # the clocks skip 02:30 on 29 March: an hour later, once
        ("2026-03-29T12:00", "02:30", "2026-03-29T01:30", "2026-03-30T00:30"),
        # they show 02:30 twice on 25 October: the first, once
        ("2026-10-25T00:30", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("2026-10-25T01:45", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
    ],
)
def test_a_time_of_day_comes_once_a_day_whatever_the_clocks_do(now, at, last, following):
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    clock = time.fromisoformat(at)

    found = last_time(clock, BERLIN, moment), next_time(clock, BERLIN, moment)

    assert [one.strftime("%Y-%m-%dT%H:%M") for one in found] == [last, following]
