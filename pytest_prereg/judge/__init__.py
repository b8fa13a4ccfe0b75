"""What it means: intervals, verdicts, power, design check. Pure: no I/O, no random numbers."""
