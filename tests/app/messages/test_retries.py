"""Sending again: what is worth it, how often, and to whom."""

import pytest

from goodput_messages.retries import PAUSE_MAX_S, PAUSES_S, NotSentError, send_with_retry
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
