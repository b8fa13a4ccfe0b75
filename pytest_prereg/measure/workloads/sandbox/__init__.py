"""Programs that nobody has read, run one per sandbox, and graded where they can't reach."""
