"""Headers of every answer: a page loads nothing from elsewhere, and no other page may frame it."""

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import streamlit

from goodput_app.server.index_page import SCRIPT

INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
INDEX = Path(str(streamlit.__file__)).with_name("static") / "index.html"


def security_headers(frame_ancestors: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return names and values; frame_ancestors: origins that may frame the dashboard."""
    framing = " ".join(frame_ancestors) or "'none'"
    policy = {
        "default-src": "'self'",
        "script-src": f"'self' {_inline_scripts()}",
        "style-src": "'self' 'unsafe-inline'",  # Streamlit's and Plotly's styles have no file
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": framing,
    }
    headers = [
        ("Content-Security-Policy", "; ".join(f"{name} {text}" for name, text in policy.items())),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ]
    if not frame_ancestors:
        headers.append(("X-Frame-Options", "DENY"))
    return headers


def _inline_scripts() -> str:
    """Return the hashes of the scripts that stand in the page itself."""
    found = INLINE_SCRIPT.findall(INDEX.read_bytes() + SCRIPT)
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in found)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
