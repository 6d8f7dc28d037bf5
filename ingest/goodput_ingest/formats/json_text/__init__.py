"""JSON as logs and answers have it: lines, streams, columns."""
