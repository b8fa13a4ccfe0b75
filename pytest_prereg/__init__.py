"""Pre-registered performance predictions, judged as pytest outcomes."""
