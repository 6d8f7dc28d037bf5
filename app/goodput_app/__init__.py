"""What people touch: dashboard, command line, server. The only package that knows streamlit."""

import os

# Before polars and duckdb are loaded, which read them then: memory that was freed is kept for ten
# seconds for what comes next, and then given back, by a process at rest as well.
for _allocator in ("_RJEM_MALLOC_CONF", "DUCKDB_JE_MALLOC_CONF"):
    os.environ.setdefault(
        _allocator, "background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:10000"
    )
