"""Traces of the operations of each worker of a job with data and pipeline parallelism."""
