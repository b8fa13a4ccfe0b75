"""The gate: what a pull request changes, by the commits at its two ends alone."""
