"""Log formats as data: a TOML file for each, with patterns, what a line means, and examples."""
