"""Formats of evidence that was measured elsewhere."""
