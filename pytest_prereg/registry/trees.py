"""Python modules as syntax trees, and a digest of a tree that every supported Python agrees on.

``ast.dump`` and ``ast.unparse`` differ between versions, so the digest walks the nodes itself: their types
and their non-empty fields, without comments, docstrings, positions or formatting.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DERIVED_FIELDS = frozenset({"ctx", "kind", "type_comment"})
"""What the rest of the tree implies (``ctx``), or what means nothing when run (``u"…"``, type comments)."""

MODULES_KEPT = 512
"""Of so many modules what was found is kept: the experiments of a study mostly run the same ones."""

HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def parse(text: bytes) -> ast.Module:
    """The syntax tree of a module's bytes, in the encoding that they declare.

    Raises:
        SyntaxError: Whatever it is that keeps the text from being Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in a user's module is no business of ours
        try:
            return ast.parse(text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error) or "nested too deeply") from error


@lru_cache(maxsize=MODULES_KEPT)
def tree_digest(text: bytes) -> str:
    """SHA-256, in hex, of a module without comments, docstrings or formatting.

    Text that is no Python is taken as it stands, byte by byte.
    """
    try:
        tree = parse(text)
    except SyntaxError:
        return hashlib.sha256(b"bytes\n" + text).hexdigest()
    digest = hashlib.sha256(b"tree\n")
    for token in _tokens(tree):
        digest.update(token)
        digest.update(b"\n")
    return digest.hexdigest()


def walk_in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, each before its children, in the order of the text."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _tokens(tree: ast.Module) -> Iterator[bytes]:
    """The tree as lines; a stack of our own, since long ``elif`` chains nest deeper than Python recurses."""
    stack: list[object] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, bytes):
            yield item
        elif isinstance(item, ast.AST):
            yield b"(" + type(item).__name__.encode()
            stack.append(b")")
            for name, value in reversed(list(_fields(item))):
                stack.extend((value, b"." + name.encode()))
        elif isinstance(item, list):
            yield b"["
            stack.append(b"]")
            stack.extend(reversed([_constant(None) if each is None else each for each in item]))
        else:
            yield _constant(item)


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """A node's non-empty fields, with what differs only in appearance brought to one form."""
    for name, value in ast.iter_fields(node):
        if name in DERIVED_FIELDS:
            continue
        if isinstance(node, ast.Constant):
            yield name, _constant(value)
            continue
        if name == "body" and isinstance(node, HAVE_DOCSTRINGS):
            value = _without_docstring(value)  # noqa: PLW2901
        elif name == "values" and isinstance(node, ast.JoinedStr):
            value = _joined(value)  # noqa: PLW2901
        if value is not None and value != []:
            yield name, value


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    documented = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if documented else body


def _joined(parts: list[ast.expr]) -> list[object]:
    """The parts of an f-string; how literal text is split between constants differs between versions."""
    joined: list[object] = []
    text = ""
    for part in parts:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        joined += [_constant(text), part] if text else [part]
        text = ""
    return [*joined, _constant(text)] if text else joined


def _constant(value: object) -> bytes:
    """A constant on one line: its type, so that ``1`` and ``True`` differ, and its value in ASCII."""
    shown = format(value, "x") if type(value) is int else ascii(value)
    return f"{type(value).__name__}:{shown}".encode()
