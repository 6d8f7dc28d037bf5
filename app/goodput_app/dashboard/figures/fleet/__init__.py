"""Figures of the Fleet page: GPUs by rack, rows over time, their colours."""
