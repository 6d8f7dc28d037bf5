"""What the allocators of a process are told: by environment variables, read once, early.

Those of polars and DuckDB read theirs as they are loaded, the C library its own as a process
begins. What a person has set there stays. Programs that a process starts are given no other
allocator: a browser does not run with it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

# memory that was freed is kept for ten seconds for what comes next, and then given back, by a
# process at rest as well
DECAY = "background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:10000"
LIBRARIES = ("_RJEM_MALLOC_CONF", "DUCKDB_JE_MALLOC_CONF")

# Each statement of a build is planned in thousands of small pieces. glibc searches its heap for
# them, the longer the more a process has lived; jemalloc, where the system has it, does not.
PRELOAD = "LD_PRELOAD"
OF_JEMALLOC = "MALLOC_CONF"
JEMALLOC = "libjemalloc.so.2"
FOLDERS = (
    f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}", "/usr/lib64", "/usr/lib", "/usr/local/lib"
)  # fmt: skip

# Else glibc keeps more of them: of each size seven, for the thread that freed them.
TUNABLES = "GLIBC_TUNABLES"
PIECES_KEPT = "glibc.malloc.tcache_count"
PIECES = 1_000  # of each of 64 sizes up to 1,032 bytes: at most 34 MB a thread

# names what a process was begun with by us; some systems take that from it, and leave the names
MARK = "GOODPUT_BEGAN_WITH"
_is_begun_with_it = MARK in os.environ


def tell() -> None:
    """Set what libraries read that are loaded from now on; take back what was for this process."""
    for name in LIBRARIES:
        os.environ.setdefault(name, DECAY)
    for name in os.environ.pop(MARK, "").split():
        os.environ.pop(name, None)


def to_begin_with() -> dict[str, str]:
    """Return the variables that a process is to begin with; none where this one has them."""
    preloaded, tunables = os.environ.get(PRELOAD), os.environ.get(TUNABLES, "")
    if _is_begun_with_it:
        return {}
    if preloaded is None and (library := _jemalloc()):
        decay = {} if OF_JEMALLOC in os.environ else {OF_JEMALLOC: DECAY}
        return {PRELOAD: library, **decay, MARK: " ".join([PRELOAD, *decay])}
    if _is_glibc() and JEMALLOC not in (preloaded or "") and PIECES_KEPT not in tunables:
        ours = f"{PIECES_KEPT}={PIECES}"
        if tunables:
            return {TUNABLES: f"{tunables}:{ours}", MARK: ""}
        return {TUNABLES: ours, MARK: TUNABLES}
    return {}


def _jemalloc() -> str | None:
    """Return the system's jemalloc; only of x86-64, elsewhere it may be built for other pages."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return None
    return next((str(p) for p in (Path(f, JEMALLOC) for f in FOLDERS) if p.exists()), None)


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, OSError, ValueError):  # another system, or C library
        return False
