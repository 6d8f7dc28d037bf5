"""One package a source of evidence; `registry` lists them by name."""
