"""Real work to measure: each workload states its own version."""
