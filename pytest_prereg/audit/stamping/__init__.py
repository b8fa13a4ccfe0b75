"""Time-stamps over versions of a lock: asked for, kept, verified offline."""
