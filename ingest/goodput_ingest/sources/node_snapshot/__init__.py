"""The configuration of a node and of a process on it: taken here, written as JSON, read as rows.

    host, gpus, process ──> found ──> snapshot: one line of JSON ──> source: raw.node_settings

What takes a snapshot needs Python alone, and `pynvml` for GPUs.
"""
