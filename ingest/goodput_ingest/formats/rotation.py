"""Names that a rotation gives to logs: `train.log.1`, `train.log-20260820`, `train.log.old`."""

import re

ROTATED = re.compile(r"(?P<name>.+?)(?:\.\d{1,3}|[-.]\d{8}(?:[-.T_]?\d{2,6})?|\.(?:old|prev))")
# without a name that ends as logs do, a number may be anything: a rank, a year
LOG = re.compile(r".*\.(?:log|out|err|txt|jsonl|json)|syslog|messages|kern")


def unrotated(name: str) -> str:
    """Return the name that a log had before it was rotated, else its own."""
    found = ROTATED.fullmatch(name)
    return found["name"] if found and LOG.fullmatch(found["name"]) else name
