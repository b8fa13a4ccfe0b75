"""The environment in which git is asked anything: it answers about one repository, and in one language."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ENVIRONMENT = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

REDIRECTIONS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)
"""Set by git around its hooks: they send a question to another repository, or change its meaning."""


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment that git is run in."""
    return undirected(inherited) | ENVIRONMENT


def undirected(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would send git to another repository than the one it is run in."""
    return {name: value for name, value in inherited.items() if name not in REDIRECTIONS}
