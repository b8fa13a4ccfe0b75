"""How it is shown: terminal, JSON."""
