"""Whether the order was right: git history and grades."""
