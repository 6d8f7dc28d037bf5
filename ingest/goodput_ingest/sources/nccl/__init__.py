"""NCCL: Inspector logs, debug logs, RAS answers, nccl-tests results."""
