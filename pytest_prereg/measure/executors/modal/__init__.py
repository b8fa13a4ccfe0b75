"""Repeats on Modal: each in a container of its own, where it runs as it would on this machine."""
