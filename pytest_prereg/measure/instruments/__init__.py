"""What takes a reading: each with its unit, what it reads, and its known bias."""
