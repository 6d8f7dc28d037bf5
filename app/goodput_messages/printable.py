"""Untrusted text made harmless for terminals, logs and headers."""


def printable(text: str) -> str:
    """Return text that moves no cursor and rings no bell: names in job logs are not ours."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
