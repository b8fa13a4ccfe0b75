"""Sandboxes on Modal, behind the interface that those of this machine have."""
