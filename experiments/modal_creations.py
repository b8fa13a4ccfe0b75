"""How long sandboxes of Modal's take until they are there, many at once, from a machine with a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg import experiment
from pytest_prereg.measure.executors.modal.preflight import check
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.modal.client import ModalSandbox

if TYPE_CHECKING:
    from pytest_prereg import Repeat

check()  # before a series begins, which would be spent where there is no token, as in a container of theirs

AT_ONCE = 200
"""Most programs that run at a time; further sandboxes are kept warm."""
COMPLETION = Completion(
    program="def solve(n):\n    return 2 * n\n", tests=(CallTest(function="solve", args=[21], expected=42),)
)


@experiment(
    metrics={
        "creation": {"unit": "s", "instrument": "program-clock"},
        "passed": {"unit": "1", "exact": True},
        "refused": {"unit": "1", "exact": True},
    },
)
def modal_creations(repeat: Repeat, *, sandboxes: int = 256, deadline: float = 30.0) -> None:
    """Ask for ``sandboxes`` at once, and have each grade a program that is right.

    ``creation`` has a sample for each of the first ``sandboxes``: from asking until a program could be
    handed over.
    ``refused`` counts creations that Modal refused for there being too many, each of which was asked for
    again; ``passed`` the programs that were graded as they should.
    """
    workers = min(sandboxes, AT_ONCE)
    with ModalSandbox(
        limits=Limits(deadline=deadline),
        workers=workers,
        warm=sandboxes - workers,
        per_second=1000.0,
        burst=sandboxes,
    ) as sandbox:
        graded = sandbox.grade([COMPLETION] * sandboxes)
        first = sorted(sandbox.creations())[:sandboxes]  # the rest took the place of warm ones, later
    created = [ready - began for began, ready in first]
    repeat.instrument("program-clock").record("creation", created)
    repeat.record("passed", sum(each.outcome == "pass" for each in graded))
    repeat.record("refused", sandbox.refusals)
    repeat.record("modal", sandbox.told())
