"""Answers to programs that reason, over the Model Context Protocol (MCP): read-only, bounded."""
