"""Experiments that hold an instrument against something known: what a study calibrates its instruments by.

Each records what it knows and what the instrument read of it as taken by what knows: the square wave, or the
clock. A calibration may not rest on what it calibrates.
"""
