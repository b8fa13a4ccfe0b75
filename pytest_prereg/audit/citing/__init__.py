"""Numbers that Markdown quotes from the lock: found, written, checked."""
