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
autodoc_mock_imports = ["torch", "transformers", "huggingface_hub"]  # an extra
nitpicky = True
# Other projects' names can't be looked up without a network; our own must be found, these type aliases apart.
nitpick_ignore_regex = [
    ("py:.*", r"(?!pytest_prereg\b).*"),
    ("py:class", r"pytest_prereg\..*\.(Body|InstrumentKind|MetricDeclarations|WallClock)"),
]

html_theme = "furo"
html_title = f"pytest-prereg {release}"
exclude_patterns = ["_build", "tables"]
