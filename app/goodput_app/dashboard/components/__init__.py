"""What pages are made of: the scope bar, figures, tables, states."""
