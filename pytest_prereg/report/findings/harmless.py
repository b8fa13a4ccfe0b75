"""Text that others wrote, made harmless: what would act on a terminal, a log or a page is shown instead.

Reasons, file names and values come from whoever opens a pull request, and are read by who has to judge it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_prereg.errors import visible
from pytest_prereg.report.columns import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG_COMMAND = re.compile(r"##(?=\w*\[)")
"""GitHub's runner acts on ``##[error]`` wherever it stands in a line, Azure's on ``##vso[``."""
_MENTION = re.compile(
    r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE
)
_MARKUP = re.compile(r"[\\`*_\[\]#|~$]")
_BULLET = re.compile(r"^([-+=]|[0-9]+(?=[.)]))")
"""A line's beginning that makes it an item of a list, or what is above it a heading."""
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_NOTHING = "\N{ZERO WIDTH SPACE}"
_GIT = (
    "add|branch|checkout|clone|commit|diff|fetch|init|log|"
    "merge|pull|push|rebase|restore|revert|show|switch|tag"
)
_COMMAND = re.compile(
    rf"(?:^|(?<=: ))(?P<command>(?:pytest-prereg [a-z]|pytest --|git (?:{_GIT})\b).*?)"
    r"(?:(?<=\w)\.)?(?P<rest>(?:, (?:and|or|then) .*)?)$"
)
"""Where a line of advice goes over to what can be typed."""


def plain(text: str) -> str:
    """Return ``text`` on one line, with each character that could not be seen spelled out in ASCII."""
    return _LOG_COMMAND.sub("# #", visible(text))


def clipped(text: str, most: int) -> str:
    """Return ``text`` harmless on one line, of at most ``most`` characters and cells: some take no cell."""
    text = plain(text)
    return cut(text if len(text) <= most else f"{text[: most - 1]}…", most)


def harmless_line(line: str) -> str:
    """Return a line of text that no log takes for a command, as GitHub's does ``::error::`` in front."""
    return line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line


def markdown(text: str) -> str:
    """Return ``text`` as Markdown that shows it, on one line: no markup, link, mention or end of a cell."""
    escaped = _MARKUP.sub(
        r"\\\g<0>", _MENTION.sub(_NOTHING, " ".join(plain(text).split())).translate(_ENTITIES)
    )
    return _BULLET.sub(rf"{_NOTHING}\1", escaped)


def code(text: str) -> str:
    """Return ``text`` as a code span; in a table its pipes are still to be escaped."""
    text = plain(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}" if text else ""


def advice_parts(advice: str) -> Iterator[tuple[str, str]]:
    """Yield an advice as words and the command that they end with; either may be empty."""
    words: list[str] = []
    for line in advice.splitlines():
        found = _COMMAND.search(line)
        words.append(line[: found.start()] if found else line)
        if found:
            yield _joined(words), found["command"]
            words = [found["rest"].removeprefix(", ")]
    if _joined(words):
        yield _joined(words), ""


def _joined(words: list[str]) -> str:
    return " ".join(" ".join(words).split())
