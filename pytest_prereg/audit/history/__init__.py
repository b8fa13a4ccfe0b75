"""What git knows of a study: its commits, its locks, its evidence, and which came first."""
