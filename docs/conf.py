"""Configuration of the documentation."""

from __future__ import annotations

from importlib import metadata

project = "pytest-prereg"
author = "The pytest-prereg authors"
copyright = f"2026, {author}"
release = metadata.version("pytest-prereg")
version = release.rpartition(".")[0]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "description"
nitpicky = True

html_theme = "furo"
html_title = f"pytest-prereg {release}"
exclude_patterns = ["_build", "tables"]
