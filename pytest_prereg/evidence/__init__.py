"""What was seen: repeats, session files, environment, importers."""
