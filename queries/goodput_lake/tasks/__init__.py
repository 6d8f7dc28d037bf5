"""Stages computed part by part from readings in a lake, by this process or by workers."""
