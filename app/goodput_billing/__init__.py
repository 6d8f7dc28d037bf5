"""Chargeback: statements, their files, their delivery. Knows no web and no terminal."""
