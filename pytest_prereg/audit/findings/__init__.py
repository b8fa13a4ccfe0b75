"""Finders: each takes a study with its evidence and its history, and yields what it finds."""
