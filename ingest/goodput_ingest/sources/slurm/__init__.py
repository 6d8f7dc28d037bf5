"""Slurm: accounting, jobs, nodes, reservations, from its commands' output."""
