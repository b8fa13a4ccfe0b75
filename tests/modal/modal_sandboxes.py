"""Programs for sandboxes on Modal, which import nothing that lies in a file: their user may not be able to read it."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.modal.client import ModalSandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from standin_handle import Service

MEBIBYTE = 2**20
SMALL = Limits(
    deadline=10.0,
    cpu=5.0,
    memory=128 * MEBIBYTE,
    processes=8,
    file_size=MEBIBYTE,
    output=10_000,
    answer=10_000,
)
RIGHT = "def f(): return 5"
SLEEPS = "import time\ndef f(): time.sleep(60)"
FAST = {"per_second": 100.0, "burst": 100}
"""A bucket that is in nobody's way."""

Opened = "Callable[..., ModalSandbox]"


def opened(**options: Any) -> ModalSandbox:
    return ModalSandbox(**{"limits": SMALL, "workers": 3, **FAST, **options})


def asking(program: str, expected: object = 5, tests: int = 1) -> Completion:
    """A completion whose ``f()`` should answer so, each time."""
    test = CallTest(function="f", expected=expected)
    return Completion(program=dedent(program), tests=(test,) * tests)


def nothing_is_left(service: Service) -> bool:
    return not service.state()["sandboxes"]


def running(service: Service, count: int = 1) -> Callable[[], bool]:
    """Whether so many sandboxes have been asked to execute something."""
    return lambda: len(service.events("executed")) >= count
