"""Serving engines: their sources, stages and marts, rules of findings and command."""
