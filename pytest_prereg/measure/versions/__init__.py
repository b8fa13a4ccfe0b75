"""Arms that are versions of the code: resolved to trees, checked out, built, and cleared away."""
