"""NVIDIA's own readings of a machine's GPUs: read here, written as JSON lines, turned into rows.

    library ──> gpu (gpm, instances, readings) ──> node ──> sampler ──> JSON lines
                                                              │            │
                                              recorder: a file│            │rows: the raw tables
                                              live: a buffer ─┘────────────┘

What is recorded and what is read live is the same text, so there is one code after the read. All
that reads (everything but `rows`, `columns` and `live`) needs Python and `pynvml` alone.
"""
