"""What a sandboxed program may use; what goes over ends it, and the outcome says which limit it was."""

from __future__ import annotations

import math

import msgspec

from pytest_prereg.measure.workloads.language.settings import is_number, refuse

WORKLOAD_VERSION = "1"

_MEBIBYTE = 2**20
LONGEST = 86_400.0
"""Seconds: a day."""
_LEAST = {
    "memory": 32 * _MEBIBYTE,
    "processes": 2,
    "open_files": 16,
    "file_size": 0,
    "disk": 4096,
    "files": 8,
    "output": 0,
    "answer": 64,
}
"""An interpreter needs some of each to start."""

_OF = {"processes": "", "open_files": "", "files": ""}
"""What a number counts, if not bytes."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of one completion, all of its tests and processes together unless said otherwise.

    Raises:
        ValueError: Some are out of range; all of them are named.
    """

    deadline: float = 10.0
    """Seconds on the clock, from the moment that a ready sandbox is handed the program to the last answer."""
    cpu: float = 10.0
    """Seconds of processor time, per process; rounded up to whole seconds."""
    memory: int = 512 * _MEBIBYTE
    """Bytes: of address space per process, and of resident anonymous memory of all processes together."""
    processes: int = 16
    """Processes and threads at a time, those of the sandbox itself included."""
    open_files: int = 64
    """Per process."""
    file_size: int = 16 * _MEBIBYTE
    """Bytes of one file, holes included."""
    disk: int = 32 * _MEBIBYTE
    """Bytes of all files; they are in memory."""
    files: int = 1024
    """Files and folders."""
    output: int = 64 * 1024
    """Bytes written to standard output and error, per test."""
    answer: int = 1 * _MEBIBYTE
    """Bytes of an answer, as JSON, per test."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {value!r}: give seconds above 0, at most {LONGEST:g}"
            for name in ("deadline", "cpu")
            if not (is_number(value := getattr(self, name)) and 0 < value <= LONGEST)
        ]
        problems += [
            f"{name} = {value!r}: give a whole number{_OF.get(name, ' of bytes')} from {least} on"
            for name, least in _LEAST.items()
            if not (type(value := getattr(self, name)) is int and least <= value < 2**48)
        ]
        refuse(problems)

    @property
    def cpu_seconds(self) -> int:
        """``cpu`` as the kernel takes it."""
        return math.ceil(self.cpu)
