"""Processes of this machine by `/proc`: what they are, and jobs that are started or watched.

Needs Python alone: it runs on nodes beside `sources.nvml`, and around jobs.
"""
