"""The documentation that comes with the program: its pages, as the dashboard shows them."""

import posixpath
import re
from pathlib import Path
from typing import Final

_PACKAGED = Path(__file__).with_name("docs")
_CHECKOUT = Path(__file__).parents[2] / "docs"
TITLES: Final = {  # in the order in which a site needs them
    "dashboard": "The dashboard",
    "findings": "Findings",
    "glossary": "Glossary",
    "accounting-rules": "Accounting rules",
    "billing-rules": "Billing rules",
    "connect": "Connect sources",
    "job-events": "Job events",
    "log-profiles": "Log profiles",
    "operate/index": "Operate",
    "operate/systemd": "systemd",
    "operate/container": "Container",
    "operate/kubernetes": "Kubernetes",
    "operate/sizing": "Sizing",
    "operate/backup": "Backup and upgrade",
    "operate/job-reports": "Reports of jobs",
    "operate/replay": "Replay",
    "access": "Access",
    "metrics": "Metrics",
    "notifications": "Notifications",
    "lake": "A lake",
    "performance": "Performance",
    "api": "HTTP API and SQL",
    "python-api": "Python API",
    "compare": "Compare with other tools",
    "evaluation": "How well findings are found",
}
_CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_PAGE = re.compile(r"([\w./-]+)\.md(#[\w-]+)?")


def text(name: str, address: str) -> str:
    """Return a page in Markdown without its title.

    address: of the page that shows it; links to other pages lead there, with `doc=NAME`. A link
    to what does not come with the program is its text alone.
    """
    folder = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    _, _, content = (folder / f"{name}.md").read_text("utf-8").partition("\n")

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        if page := _PAGE.fullmatch(target):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(name), page[1]))
            if other in TITLES:
                return f"[{label}]({address}?doc={other}{page[2] or ''})"
        return match[0] if re.match(r"https?:|#", target) else label

    # code stays as it is; a dollar elsewhere would begin a formula
    pieces = _CODE.split(content)
    shown = [
        piece if i % 2 else _LINK.sub(link, piece).replace("$", r"\$")
        for i, piece in enumerate(pieces)
    ]
    return "".join(shown)
