"""The lake: raw tables as Delta tables in a folder or an object store, for several writers."""
