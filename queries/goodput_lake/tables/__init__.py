"""The tables of a lake: Delta tables in a folder or an object store, written by several."""
