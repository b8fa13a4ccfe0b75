"""What a person types: a thin layer that reads options, calls, prints and exits."""
