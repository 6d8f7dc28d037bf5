"""Two runs or two time ranges against each other: what differs, by how much, how sure it is."""
