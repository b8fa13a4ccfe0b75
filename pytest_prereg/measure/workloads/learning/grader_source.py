"""Digests of what grades: of the functions that are really called, whatever they are called by.

A task is never asked which digest it has: what replaces a grader would replace that, too.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.trees import tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.measure.workloads.learning.tasks import Task

WORKLOAD_VERSION = "1"

_GRADERS = ("reward", "solves")
_PLAIN = (bool, int, float, str, bytes, type(None))
"""What can be told apart by how it is written, and the same in every process."""


def verifier_digest(task: Task) -> str:
    """Return SHA-256, in hex, over a task's graders, and those that its classes inherit."""
    classes = [vars(each) for each in type(task).__mro__]
    inherited = [each[name] for each in classes for name in _GRADERS if name in each]
    return source_digest(task.reward, task.solves, *inherited)


def source_digest(*graders: Callable[..., object]) -> str:
    """Return SHA-256, in hex, of the names of functions, and of the modules that their code is written in.

    So is it of every function that one of these names, but for Python's own, and of the plain values that
    they name. One that was put in place of another is told apart by its code's own file; another comment,
    docstring or layout is no other grader.
    """
    waiting: list[object] = list(graders)
    lines: dict[tuple[str, str, int], str] = {}
    while waiting:
        function = _function(waiting.pop(0))
        code = function.__code__
        key = (code.co_qualname, code.co_filename, code.co_firstlineno)
        if key in lines:
            continue
        named = dict(_named(function))
        values = {name: value for name, value in named.items() if isinstance(value, _PLAIN)}
        lines[key] = f"{code.co_qualname} {_written(code)} {sorted(values.items())!r}"
        waiting += [value for value in named.values() if _is_followed(value)]
    return hashlib.sha256("\n".join(lines.values()).encode()).hexdigest()


def _function(grader: Any) -> FunctionType:
    """Return the function that a call of a grader runs."""
    while isinstance(grader, MethodType | partial):
        grader = grader.__func__ if isinstance(grader, MethodType) else grader.func
    if not isinstance(grader, FunctionType):
        grader = getattr(type(grader), "__call__", None)  # noqa: B004
    if not isinstance(grader, FunctionType):
        raise TypeError(f"{grader!r} grades, and is not written in Python: its source can't be told")
    return grader


def _is_followed(value: object) -> bool:
    if isinstance(value, BuiltinFunctionType) or not isinstance(value, FunctionType | partial):
        return False
    module = getattr(_function(value), "__module__", None) or ""
    return module.partition(".")[0] not in sys.stdlib_module_names


def _named(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield what a function names outside itself: globals, and what it encloses."""
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__ and not name.startswith("__"):
            yield name, function.__globals__[name]
    yield from inspect.getclosurevars(function).nonlocals.items()


def _names(code: CodeType) -> set[str]:
    """Return the names in a function's code, that of functions within it included."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


def _written(code: CodeType) -> str:
    """Return a digest of the module that code is written in; of the code, where that can't be told apart."""
    try:
        digest = tree_digest(Path(code.co_filename).read_bytes())
    except OSError:  # typed in, or made by other code
        digest = ""
    if digest and not code.co_qualname.endswith(">"):
        return digest
    return digest + hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()
