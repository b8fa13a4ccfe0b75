"""Whether what a body raised means that it was out of memory."""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSES = frozenset({"MemoryError", "OutOfMemoryError"})
"""By name, base classes included: numpy's is a ``MemoryError``; torch can't be imported just to compare."""

SAID = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate|not enough) memory"
    r"|(?:CUDA|HIP|XPU|MPS backend) out of memory"
    r"|(?:CUDA|HIP)(?: driver)? error: out of memory"
    r"|Triton Error \[\w+\]: out of memory"
    r"|Cuda failure (?:\d+ )?'out of memory'"
    r"|RESOURCE_EXHAUSTED: (?:[^\n]*: )?Out of memory"
    r"|\b(?:CU|HIP)[A-Z]+_(?:STATUS_)?ALLOC_FAILED\b"
    r"|\bCUDNN_STATUS_INTERNAL_ERROR_(?:DEVICE|HOST)_ALLOCATION_FAILED\b"
    r"|unable to (?:mmap|allocate)[^\n]*: Cannot allocate memory \(12\)"
    r"|^(?:RuntimeError: )?std::bad_alloc"
    r"|^(?:\w+\.)*(?:_Array|OutOf)?MemoryError(?::|$)",
    re.MULTILINE,
)
"""What a ``RuntimeError`` says of it: allocators of torch, its libraries and jax that have no class for it,
or the traceback of another process. That a message speaks of memory does not suffice."""

SPEAKING = frozenset({"RuntimeError", "ProcessRaisedException"})
"""Classes whose text is read; the second is torch's, and quotes the traceback of another process."""

ABORTED = re.compile(
    r"terminate called after throwing an instance of '(?:std::bad_alloc|c10::OutOfMemoryError)'"
)
"""What C++ prints where nothing catches the exception, before it aborts."""

READ = 20_000
"""Characters of a message that are read."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception, or one that it came of, tells of want of memory."""
    return any(map(_tells, _shown(error)))


def _shown(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it came of, as its traceback shows them, and those that it holds."""
    pending, seen = [error], set[int]()
    while pending:
        each = pending.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            pending += _behind(each)


def _behind(error: BaseException) -> list[BaseException]:
    handled = None if error.__suppress_context__ else error.__context__
    held = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    hidden = vars(error).get(
        "inner_exception"
    )  # where a compiler of torch's keeps what it raises "from None"
    return [each for each in (error.__cause__, handled, hidden, *held) if isinstance(each, BaseException)]


def _tells(error: BaseException) -> bool:
    bases = {base.__name__ for base in type(error).__mro__}
    if bases & CLASSES:
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if bases & SPEAKING:
        with suppress(Exception):  # its text is code of the body's own
            return SAID.search(str(error)[:READ]) is not None
    return False
