"""PCI addresses in one form: every source writes them differently."""

import re

ADDRESS = re.compile(
    r"(?:PCI:)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE
)


def pci_bus_id(text: str | None) -> str | None:
    """Return `00000000:9b:00.0` for `PCI:0000:9b:00`, `9B:00.0` and the like; else None."""
    match = ADDRESS.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{(domain or '0'):0>8}:{bus:0>2}:{device:0>2}.{function or '0'}".lower()
