"""The letter: the figures of a statement in a few lines, whatever accounts are called."""

from decimal import Decimal

import polars as pl

from goodput_billing.delivery.letter import ACCOUNTS_SHOWN, Enclosed, letter
from goodput_billing.statement.amounts.charges import Policy

NO_POLICY = Policy("none", False, {})
NOTHING = Enclosed()


def test_it_says_what_was_billed_by_account(make, lines):
    made = make(lines, NO_POLICY, site="hall 1")

    written = letter(made, "provisional", "id", NOTHING)

    assert written.subject == "GPU statement 2026-11-19 (hall 1): $1,323.43, provisional"
    text = written.text.splitlines()
    assert text[0] == "GPU chargeback statement, Thursday 19 November 2026"
    assert text[3].startswith("Open: figures may still change.")
    row = next(line for line in text if line.strip().startswith("nlp"))
    assert row.split() == ["nlp", "342.9", "0.0", "%", "977.54", "no", "data"]
    assert text[-1] == "1.00 GPU-hours have no price and are not included."


def test_names_begin_no_line_no_tag_and_are_cut(make, lines):
    for row, name in zip(
        lines, ["<img src=x onerror=alert(1)>", "a\r\nBilled  $0.00", "漢" * 99], strict=False
    ):
        row["team"] = name
    losses = pl.DataFrame(
        [{"cluster": "c", "account": "<b>", "run_id": "r\n\x1b]0;", "label": "Idle", "cause": "",
          "blame": "own", "confidence": "high",
          "gpu_ms": 3_600_000, "cost": Decimal("2.00"), "fix": ""}]
    )  # fmt: skip
    made = make(lines, NO_POLICY)
    object.__setattr__(made, "losses", losses)

    written = letter(made, "closed", "id", NOTHING)

    assert "a\\r\\nBilled  $0.00" in written.text
    assert "r\\n\\x1b]0;" in written.text
    assert "漢" * 19 in written.text
    assert "漢" * 20 not in written.text
    assert "<img" not in written.html
    assert "&lt;img src=x onerror=alert(1)&gt;" in written.html
    assert "&lt;b&gt;" in written.html
    assert "\x1b" not in written.html


def test_accounts_that_are_not_shown_are_added_up(make, lines):
    usage = lines[2]
    many = [
        usage | {"team": f"team {n:02}", "gpu_ms": 3_600_000, "unsettled_ms": 3_600_000}
        for n in range(ACCOUNTS_SHOWN + 3)
    ]

    text = letter(make(many, NO_POLICY), "closed", "id", NOTHING).text

    row = next(line for line in text.splitlines() if "more" in line)
    assert row.split() == ["3", "more", "3.00", "6.00"]
    assert "team 25" not in text


def test_links_and_what_was_too_large_are_named(make, lines):
    enclosed = Enclosed(
        [("Dashboard", "https://g.example/?a=1&b=2")], ["a.pdf"], ["b.csv (99.0 MB)"]
    )

    written = letter(make(lines, NO_POLICY), "closed", "id", enclosed)

    assert "Attached: a.pdf.\nToo large to be attached: b.csv (99.0 MB).\n" in written.text
    assert written.text.endswith("Dashboard: https://g.example/?a=1&b=2\n")
    assert 'href="https://g.example/?a=1&amp;b=2"' in written.html
