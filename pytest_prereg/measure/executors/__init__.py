"""Where repeats run."""
