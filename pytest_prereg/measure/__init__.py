"""How it is measured: `@experiment`, `Repeat`, schedule, executors, instruments, workloads."""
