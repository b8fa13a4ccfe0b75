"""Registrations held against each other: made easier to meet, or contradicting."""
