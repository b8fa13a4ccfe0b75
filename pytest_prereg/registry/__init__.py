"""What is promised: model, loading with lines, quantities, units, digests, lock."""
