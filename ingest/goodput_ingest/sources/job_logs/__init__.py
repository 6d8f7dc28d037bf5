"""Logs of jobs: one module a framework, all read side by side by `source.JobLog`.

To add a framework, write a `LogFormat` (events.py) and name it in `source.FORMATS`.
"""
