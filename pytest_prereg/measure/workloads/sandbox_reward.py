"""The built-in ``sandbox_reward``: what it takes to grade a batch of programs that nobody has read."""

from __future__ import annotations

import math
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.experiment import experiment
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.workloads.language.recording import one_or_all
from pytest_prereg.measure.workloads.sandbox import bubblewrap
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.grading import verifier_digest
from pytest_prereg.measure.workloads.sandbox.modal.client import ModalSandbox
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome
from pytest_prereg.measure.workloads.sandbox_settings import SandboxSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.measure.repeat import Repeat

    # What runs in processes of its own: imported nowhere, and its versions count all the same.
    from pytest_prereg.measure.workloads.sandbox import driver, supervisor  # noqa: F401
    from pytest_prereg.measure.workloads.sandbox.completions import Completion
    from pytest_prereg.measure.workloads.sandbox.modal import inside  # noqa: F401
    from pytest_prereg.measure.workloads.sandbox.outcomes import Graded

WORKLOAD_VERSION = "1"

_MEBIBYTE = 2**20
_COUNTED = {
    "passed": Outcome.PASS,
    "failed": Outcome.FAIL,
    "timed_out": Outcome.TIMEOUT,
    "crashed": Outcome.CRASH,
    "out_of_memory": Outcome.MEMORY,
    "output_limited": Outcome.OUTPUT,
}
_TOLD = 50
"""Of so many completions that did not pass it is told how they ended."""


@experiment(
    metrics={
        "t_batch": "s",
        "t_reward": "s",
        "reward_work": "s",
        "reward_longest": "s",
        "creation": "s",
        "creation_rate": "1/s",
        "graded_rate": "1/s",
        "overshoot_largest": "s",
        "passed": {"unit": "1", "exact": True},
        "failed": {"unit": "1", "exact": True},
        "timed_out": {"unit": "1", "exact": True},
        "crashed": {"unit": "1", "exact": True},
        "out_of_memory": {"unit": "1", "exact": True},
        "output_limited": {"unit": "1", "exact": True},
        "infrastructure_faults": {"unit": "1", "exact": True},
        "creation_refusals": {"unit": "1", "exact": True},
        "credit_mean": {"unit": "1", "exact": True},
        "survivors": {"unit": "1", "exact": True},
        "gaps": {"unit": "1", "exact": True},
    },
)
def sandbox_reward(
    repeat: Repeat,
    *,
    completions: int = 0,
    tests: int = 0,
    wrong: int = 0,
    hung: int = 0,
    crashing: int = 0,
    file: str = "",
    workers: int = 2,
    warm: int = 0,
    isolation: str = "namespaces",
    deadline: float = 10.0,
    cpu: float = 10.0,
    memory: int = 512 * _MEBIBYTE,
    processes: int = 16,
    disk: int = 32 * _MEBIBYTE,
    output: int = 64 * 1024,
    packages: Sequence[str] = (),
    attempts: int = 2,
    where: str = "here",
    creations_per_second: float = 4.0,
    creations_at_once: int = 8,
) -> None:
    """Grade a batch of programs, each in a sandbox of its own, ``workers`` at a time.

    Of the built-in problems there are ``completions`` programs with ``tests`` hidden tests each, 32 and 4 if
    0; ``wrong``, ``hung`` and ``crashing`` of them are so, the others right, and the seed draws which, and
    all inputs. With a ``file`` its rows are graded, the first ``completions``, or all if 0. ``warm``
    sandboxes are kept ready. With ``isolation = "processes"`` programs are held to their limits and deadline,
    and kept from nothing else. A sandbox that failed for no reason of its program's is made again, up to
    ``attempts`` times in all; a repeat in which a program has no verdict then is invalid.

    With ``where = "modal"`` sandboxes are Modal's, one for each program as here. The creation of one begins
    when a token bucket allows it, that gets ``creations_per_second`` and holds ``creations_at_once``.

    ``t_batch`` is from submitting the batch to the last verdict, and ``graded_rate`` completions by it.
    ``t_reward`` has a sample per completion, from its program's start until nothing of it was left,
    ``reward_work`` is their sum and ``reward_longest`` the largest. ``creation`` has a sample per sandbox
    made, unused ones included, and ``creation_rate`` is their number by the time in which any was being made,
    or waited to be. ``creation_refusals`` counts those that Modal refused for there being too many, and that
    were asked for again.
    ``overshoot_largest`` is by how much the longest was beyond its deadline, 0 if none was. Counts are of
    completions, by outcome; ``infrastructure_faults`` also has those that were graded again.
    ``credit_mean`` is over completions, of the share of their tests that passed. ``survivors`` are processes
    of this repeat that are left when its sandboxes are closed. ``gaps`` counts what is missing of the
    isolation; a diagnostic names it.

    Raises:
        ValueError: Some parameters, or rows, can't be run; the message says of each what to write.
        SandboxUnavailableError: This machine, or Modal, can't isolate; the message says what is missing.
    """
    setting = SandboxSetting(
        completions=completions,
        tests=tests,
        wrong=wrong,
        hung=hung,
        crashing=crashing,
        file=file,
        workers=workers,
        warm=warm,
        isolation=isolation,
        deadline=deadline,
        cpu=cpu,
        memory=memory,
        processes=processes,
        disk=disk,
        output=output,
        packages=packages,
        attempts=attempts,
        where=where,
        creations_per_second=creations_per_second,
        creations_at_once=creations_at_once,
    )
    batch = setting.batch(repeat.seed)
    course = _run(setting, batch.completions)
    _record(repeat, course, deadline)
    _record_counts(repeat, course)
    for name, value in _told_beside(course).items():
        repeat.record(name, value)
    if batch.digest:
        repeat.record("file", f"{file}, sha256:{batch.digest}")


@dataclass(kw_only=True)
class _Course:
    """What a batch came to."""

    seconds: float
    verdicts: list[Graded]
    """The last one of each completion, in order."""
    faults: list[Graded]
    """Attempts that ended without a verdict, the last ones included."""
    isolation: str
    missing: tuple[str, ...]
    creations: list[tuple[float, float]] = field(default_factory=list)
    makings: list[tuple[float, float]] = field(default_factory=list)
    """The same from when each was wanted, where that had to wait for its turn."""
    survivors: int = 0
    refusals: int = 0
    modal: dict[str, object] | None = None
    """What is told of Modal, where it was asked."""

    @property
    def without_verdict(self) -> list[Graded]:
        return [each for each in self.verdicts if each.outcome is Outcome.INFRASTRUCTURE]

    def endings(self) -> list[str]:
        """Return of each completion that did not pass, up to 50, how it ended."""
        found = [f"{place}: {told}" for place, each in enumerate(self.verdicts, 1) if (told := _told(each))]
        return found[:_TOLD]


def _told(graded: Graded) -> str | None:
    """Return how the first test that did not pass ended; ``None`` if all did."""
    for number, test in enumerate(graded.tests, 1):
        if test.outcome is not Outcome.PASS:
            return f"{test.outcome.value}: test {number}: {test.evidence}"
    return None


def _run(setting: SandboxSetting, completions: Sequence[Completion]) -> _Course:
    belonged = _processes()
    with _opened(setting) as sandbox:
        began = monotonic()
        verdicts, faults = _graded(sandbox, completions, setting.attempts)
        course = _Course(
            seconds=monotonic() - began,
            verdicts=verdicts,
            faults=faults,
            isolation=sandbox.isolation,
            missing=sandbox.missing,
        )
        course.creations = sandbox.creations()
        if isinstance(sandbox, ModalSandbox):
            course.makings = [(each.wanted, each.ready) for each in sandbox.makings()]
            course.refusals, course.modal = sandbox.refusals, sandbox.told()
    course.survivors = len(_processes() - belonged)
    if isinstance(sandbox, ModalSandbox):
        course.survivors += sandbox.left
    return course


def _opened(setting: SandboxSetting) -> Sandbox | ModalSandbox:
    if setting.where == "modal":
        return ModalSandbox(
            limits=setting.limits(),
            workers=setting.workers,
            warm=setting.warm,
            per_second=setting.creations_per_second,
            burst=setting.creations_at_once,
        )
    return Sandbox(
        limits=setting.limits(),
        workers=setting.workers,
        warm=setting.warm,
        isolation=setting.isolation,
        packages=setting.package_folders(),
    )


def _processes() -> set[int]:
    """Return all that belong to this repeat, whatever they were started by and left by since."""
    return set(processes.descendants(processes.adopter()))


def _graded(
    sandbox: Sandbox | ModalSandbox, completions: Sequence[Completion], attempts: int
) -> tuple[list[Graded], list[Graded]]:
    """Return the last verdict on each completion, and every attempt that came to none."""
    verdicts = sandbox.grade(completions)
    faults = []
    for attempt in range(1, attempts + 1):
        open_places = [at for at, each in enumerate(verdicts) if each.outcome is Outcome.INFRASTRUCTURE]
        faults += [verdicts[at] for at in open_places]
        if not open_places or attempt == attempts:
            break
        again = sandbox.grade([completions[at] for at in open_places])
        for at, each in zip(open_places, again, strict=True):
            verdicts[at] = each
    return verdicts, faults


def _told_beside(course: _Course) -> dict[str, object]:
    """Return the diagnostics: what held, what graded, and how what did not pass ended."""
    path = bubblewrap.installed() if course.isolation == "namespaces" else None
    asked = path and subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return {
        "isolation": course.isolation,
        "missing": list(course.missing),
        "verifier": verifier_digest(),
        "bubblewrap": asked.stdout.strip() if asked else "not used",
        "endings": course.endings(),
        # No metric: it is looked at from time to time, and of what ended sooner there is none.
        "peak_memory_seen": max(each.peak_memory for each in course.verdicts) or None,
        **({} if course.modal is None else {"modal": course.modal}),
    }


def _record(repeat: Repeat, course: _Course, deadline: float) -> None:
    clock = repeat._taken_by(WALL_CLOCK)  # noqa: SLF001
    times = [each.seconds for each in course.verdicts]
    clock.record("t_batch", course.seconds)
    clock.record("t_reward", one_or_all(times))
    clock.record("reward_work", math.fsum(times))
    clock.record("reward_longest", max(times))
    clock.record("graded_rate", len(times) / course.seconds)
    clock.record("overshoot_largest", max(0.0, max(times) - deadline))
    if course.creations:
        clock.record("creation", one_or_all([ready - began for began, ready in course.creations]))
        spans = course.makings or course.creations
        clock.record("creation_rate", len(spans) / seconds_covered(spans))


def _record_counts(repeat: Repeat, course: _Course) -> None:
    counts = Counter(each.outcome for each in course.verdicts)
    for name, outcome in _COUNTED.items():
        repeat.record(name, counts[outcome])
    repeat.record("infrastructure_faults", len(course.faults))
    repeat.record("creation_refusals", course.refusals)
    if lost := course.without_verdict:
        repeat.invalidate(
            f"infrastructure: {len(lost)} of {len(course.verdicts)} completions have no verdict: "
            f"{lost[0].evidence}"
        )
    earned = [each.credit for each in course.verdicts if each.outcome is not Outcome.INFRASTRUCTURE]
    if earned:
        repeat.record("credit_mean", math.fsum(earned) / len(earned))
    repeat.record("survivors", course.survivors)
    repeat.record("gaps", len(course.missing))


def seconds_covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how long at least one of the spans, of begin and end in seconds, was going on."""
    covered, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return covered
