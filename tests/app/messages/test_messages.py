"""What each channel is sent, by golden files: GOODPUT_REWRITE_GOLDEN=1 writes them."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from tests.app.messages.notices import AT_MS, DOWN, HANG, HOSTILE, IDLE, MINUTE_MS, changed

from goodput_app.time_expressions import moment_ms
from goodput_messages import bodies
from goodput_messages.message import Notice, finding_url, headline, message
from goodput_messages.send import letter

GOLDEN = Path(__file__).with_name("golden")
MANY = tuple(changed(IDLE, finding_key=f"idle{number:08}") for number in range(25))
MESSAGES = {
    "one": message("slack", "open", (HANG,), AT_MS),
    "several": message("slack", "repeat", (HANG, IDLE, DOWN), AT_MS, answers="finding-first"),
    "many": message("slack", "open", MANY, AT_MS),
    "resolved": message("slack", "resolved", (IDLE,), AT_MS, answers="finding-first"),
    "owner": message("owner", "open", (IDLE,), AT_MS, recipient="ann"),
    "hostile": message("slack", "open", (HOSTILE,), AT_MS),
}
PEOPLE = ("one", "several", "owner", "resolved", "hostile")


def pretty(body):
    return json.dumps(json.loads(body), ensure_ascii=False, indent=1) + "\n"


def mailed(content):
    made = letter(content)
    return f"Subject: {made.subject}\n\n{made.text}\n{made.html}\n"


def alerts(content):
    ends_ms = AT_MS if content.event == "resolved" else AT_MS + 15 * MINUTE_MS
    return pretty(bodies.alerts(content.notices, ends_ms=ends_ms))


def forms():
    found = {}
    for name in PEOPLE:
        content = MESSAGES[name]
        found[f"{name}.txt"] = mailed(content)
        found[f"{name}.webhook.json"] = pretty(bodies.own(content))
        if name in ("one", "hostile", "resolved"):
            found[f"{name}.alerts.json"] = alerts(content)
        if name in ("several", "hostile"):
            found[f"{name}.slack.json"] = pretty(bodies.slack(content))
            found[f"{name}.teams.json"] = pretty(bodies.teams(content))
    return found


FORMS = forms()
if os.environ.get("GOODPUT_REWRITE_GOLDEN"):
    for name, text in FORMS.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")


def test_a_finding_that_an_earlier_release_stored_has_the_word_of_now():
    stored = msgspec.json.encode(HANG).replace(b'"page"', b'"critical"')

    assert msgspec.json.decode(stored, type=Notice) == HANG


def test_each_golden_file_is_of_a_message():
    assert {path.name for path in GOLDEN.iterdir()} == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_a_message_has_its_content(name):
    assert FORMS[name] == (GOLDEN / name).read_text(encoding="utf-8")


def test_a_group_is_called_by_what_its_findings_share():
    assert headline(MESSAGES["many"]) == (
        "[ticket] 25 findings: Allocated GPUs are idle, cluster lab, team research, run tune (7)"
    )


@pytest.mark.parametrize(
    ("gpus", "minutes", "words"),
    [(1, 59, "1 GPU has been idle for 59 min"), (8, 135, "8 GPUs have been idle for 2 h 15 min")],
)
def test_idle_time_is_in_words(gpus, minutes, words):
    since_ms = AT_MS - minutes * MINUTE_MS
    notice = changed(IDLE, idle_gpus=gpus, idle_since_ms=since_ms)

    assert words in headline(message("owner", "open", (notice,), AT_MS, recipient="ann"))


def test_a_message_for_people_lists_some_and_counts_the_rest():
    text = letter(MESSAGES["many"]).text

    assert text.count("What to do") == 20
    assert text.endswith("5 more findings are on the Findings page.\n")
    assert len(json.loads(bodies.own(MESSAGES["many"]))["findings"]) == 25


def test_a_message_has_the_same_identity_again_and_another_one_later():
    assert message("slack", "open", (HANG,), AT_MS) == MESSAGES["one"]
    assert message("slack", "open", (HANG,), AT_MS + 1).identity != MESSAGES["one"].identity
    assert message("mail", "open", (HANG,), AT_MS).identity != MESSAGES["one"].identity


def test_a_link_opens_the_finding_in_the_window_it_was_found_in():
    url = finding_url("https://goodput.example.org/", "abc", AT_MS, AT_MS + 999)

    assert url == (
        "https://goodput.example.org/findings?finding=abc"
        "&from=2026-11-20T09%3A00%3A00Z&to=2026-11-20T09%3A00%3A00Z"
    )
    assert finding_url(None, "abc", AT_MS, AT_MS) is None
    assert moment_ms("2026-11-20T09:00:00Z", datetime.now(UTC)) == AT_MS
