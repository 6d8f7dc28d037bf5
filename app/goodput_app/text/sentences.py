"""What a finding says of its subject, as one sentence."""

from __future__ import annotations

import re

# nouns that the subject of a finding names itself
NAMED = re.compile(r"^(A|An|The) (node|GPU|reservation|source|serving engine)(?=\b)")
ACRONYM = re.compile(r"^[A-Z]{2}")


def sentence(title: str, subject: str) -> str:
    """Return a rule's title said of its subject: `hgx-03 is drained`, `atlas: GPUs are free ...`.

    subject: what a finding is about, empty where it is the fleet
    """
    if not subject:
        return title
    said, is_named = NAMED.subn(lambda _: subject, title)
    if is_named:
        return said
    return f"{subject}: {title if ACRONYM.match(title) else title[0].lower() + title[1:]}"
