"""The title of a rule and the subject of a finding make one sentence."""

import pytest

from goodput_app.text.sentences import sentence


@pytest.mark.parametrize(
    ("title", "subject", "said"),
    [
        ("A node is drained", "hgx-3", "hgx-3 is drained"),
        ("A node's link is slow", "vm", "vm's link is slow"),
        ("A GPU has vanished", "vm, GPU 3", "vm, GPU 3 has vanished"),
        ("A network link was lost", "vm", "vm: a network link was lost"),
        ("GPUs are free while jobs wait", "atlas", "atlas: GPUs are free while jobs wait"),
        ("ECC is off", "vm, GPU 3", "vm, GPU 3: ECC is off"),
        ("A node is down", r"n\1", r"n\1 is down"),
        ("The ledger is not up to date", "", "The ledger is not up to date"),
    ],
)
def test_a_sentence_names_its_subject(title, subject, said):
    assert sentence(title, subject) == said
