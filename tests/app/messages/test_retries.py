"""Sending again: what is worth it, how often, and to whom."""

import pytest

from goodput_messages.retries import (
    PAUSE_MAX_S,
    PAUSES_S,
    NotSentError,
    send_with_retry,
)
from goodput_queries.errors import GoodputError


class Channel:
    """A server that gives the configured answers."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.had = []

    def __call__(self, had):
        """Answer."""
        self.had.append(had)
        answer = self.answers.pop(0)
        if isinstance(answer, GoodputError):
            raise answer
        return answer


class Pauses(list[float]):
    """How long was waited; over: whether that ended it."""

    over = False

    def __call__(self, seconds):
        """Note it."""
        self.append(seconds)
        return self.over


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
    channel, pauses = Channel(*answers), Pauses()

    sent = send_with_retry(channel, (), pauses)

    assert (sent.attempts, len(channel.had), sent.is_for_later) == (
        attempts, attempts, is_for_later,
    )  # fmt: skip
    assert (None if sent.error is None else str(sent.error)) == error
    assert pauses == list(PAUSES_S[: attempts - 1])
    assert sent.recipients == (() if error else ("a",))


@pytest.mark.parametrize(("asked_s", "waited_s"), [(5.0, 5.0), (1.0, 2.0), (86_400.0, PAUSE_MAX_S)])
def test_a_server_may_ask_for_a_longer_pause_within_reason(asked_s, waited_s):
    pauses = Pauses()

    send_with_retry(Channel(away(asked_s), ()), (), pauses)

    assert pauses == [waited_s]


def test_the_end_of_the_server_ends_the_waiting():
    pauses = Pauses()
    pauses.over = True

    sent = send_with_retry(Channel(away(), ()), (), pauses)

    assert (sent.attempts, len(pauses)) == (1, 1)
    assert sent.error is not None
