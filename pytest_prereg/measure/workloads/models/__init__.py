"""Models of the reward barrier: exact where there is a closed form, simulated otherwise."""
