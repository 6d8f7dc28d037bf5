"""What the allocators of a process are told: by environment variables, read once, early.

Those of polars and DuckDB read theirs as they are loaded, the C library its own as a process
begins. What a person has set there stays.
"""

from __future__ import annotations

import os

# memory that was freed is kept for ten seconds for what comes next, and then given back, by a
# process at rest as well
LIBRARIES = ("_RJEM_MALLOC_CONF", "DUCKDB_JE_MALLOC_CONF")
DECAY = "background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:10000"

# Each statement of a build is planned in thousands of small pieces. Of each size glibc keeps seven
# for the thread that freed them, and searches its heap for the eighth.
TUNABLES = "GLIBC_TUNABLES"
PIECES_KEPT = "glibc.malloc.tcache_count"
PIECES = 1_000  # of each of 64 sizes up to 1,032 bytes: at most 34 MB a thread

_began_with = os.environ.get(TUNABLES, "")


def tell() -> None:
    """Set them for libraries that are loaded from now on, and processes that begin from now on."""
    for name in LIBRARIES:
        os.environ.setdefault(name, DECAY)
    if _is_glibc() and PIECES_KEPT not in _began_with:
        ours = f"{PIECES_KEPT}={PIECES}"
        os.environ[TUNABLES] = f"{_began_with}:{ours}" if _began_with else ours


def is_told() -> bool:
    """Say whether this process began with all that it can be told."""
    return os.environ.get(TUNABLES, "") == _began_with


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, OSError, ValueError):  # another system, or C library
        return False
