"""A command line as it is typed, split into the arguments that a program is started with."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from pytest_prereg.registry.commands import OUT
from pytest_prereg.registry.placeholders import PORT
from pytest_prereg.registry.refusals import RefusedError, quoted

SHELL = "sh"

_LEADING = re.compile(r"[A-Za-z_]\w*=|(?:!|\{|if|for|while|until|case)(?=\s)", re.ASCII)
_ANYWHERE = frozenset("|&;<>()$`*?[\n")
"""What a shell acts on wherever it stands outside of quotes."""
_BETWEEN = " \t\n"
_STARTING = frozenset("~#")
"""What it acts on at the start of a word."""
_QUOTED = frozenset("$`")
"""What it acts on in double quotes as well."""
_BRACED = re.compile(r"\{\w+\}")
_EXPANDING = re.compile(r"\{[^\s{}\"']*(?:,|\.\.)[^\s{}\"']*\}")
_QUOTATION = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_OURS = (f"{{{OUT}}}", f"{{{PORT}}}")


class CommandLine(NamedTuple):
    """What is started, and why it is a shell if it is one."""

    arguments: tuple[str, ...]
    sign: str | None = None
    """The syntax that only a shell can act on; ``None`` where none is needed."""
    braces: str | None = None
    """A list or a range in braces that stays as it is, while shells other than ``sh`` write it out."""


def split_command(text: str) -> CommandLine:
    """Return what a POSIX shell would start for ``text``; itself, told to run it, where only a shell can.

    Raises:
        RefusedError: PR136, if there is nothing to run, or a quotation mark is left open.
    """
    text = text.strip(" \t\r\n")
    if sign := _shell_sign(text):
        return CommandLine((SHELL, "-c", text), sign, _braces_in(text))
    try:
        arguments = _words(text)
    except ValueError as error:
        advice = "Close what is open, or put a backslash before a sign that is meant as it stands."
        raise RefusedError(
            "PR136", f"{quoted(text)} can't be split into arguments: {str(error).lower()}", advice
        ) from None
    if not arguments or not arguments[0]:
        raise RefusedError("PR136", f"{quoted(text)} names no program to run")
    return CommandLine(tuple(arguments), braces=_braces_in(text))


def _words(text: str) -> list[str]:
    """Split as a shell does, to which a carriage return is a character as any other."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=False)
    reader.whitespace, reader.whitespace_split, reader.commenters = _BETWEEN, True, ""
    return list(reader)


def as_written(argument: str) -> str:
    """Return an argument as a study has it: only ``{out}`` and ``{port}`` stay placeholders.

    After a ``$`` these two are a shell's own variables.
    """

    def kept(found: re.Match[str]) -> str:
        is_ours = found[0] in _OURS and not argument[: found.start()].endswith("$")
        return found[0] if is_ours else "{" + found[0] + "}"

    return _BRACED.sub(kept, argument)


def _braces_in(text: str) -> str | None:
    """Return a list or a range in braces, which bash and others would write out and ``sh`` does not."""
    found = _EXPANDING.search(_QUOTATION.sub("q", text))
    return found[0] if found else None


def _shell_sign(text: str) -> str | None:
    """Return the first thing in ``text`` that only a shell can act on, or that it reads as shlex does not."""
    if leading := _LEADING.match(text):
        return leading[0]
    quote, starts_word, position = "", True, 0
    while position < len(text):
        sign, after = text[position], text[position + 1 : position + 2]
        if sign == "\\" and quote != "'":
            if after == "\n" or (quote and after in ("$", "`")):
                return sign + after
            position += 1
        elif _acts(sign, quote, starts_word=starts_word):
            return sign
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in ("'", '"'):
            quote = sign
        starts_word = not quote and sign in _BETWEEN
        position += 1
    return None


def _acts(sign: str, quote: str, *, starts_word: bool) -> bool:
    """Whether a shell acts on a sign inside of these quotation marks, if any."""
    if quote:
        return quote == '"' and sign in _QUOTED
    return sign in _ANYWHERE or (starts_word and sign in _STARTING)
