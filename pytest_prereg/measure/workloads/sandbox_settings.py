"""What a run of ``sandbox_reward`` may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.settings import (
    count_problem,
    refuse,
    word_problem,
)
from pytest_prereg.measure.workloads.sandbox.client import MOST
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.modal.client import BURST, PER_SECOND, rate_problem
from pytest_prereg.measure.workloads.sandbox_files import CompletionFile, read_completions
from pytest_prereg.measure.workloads.sandbox_problems import Kind, completions_of, kinds_of
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "1"

ISOLATIONS = ("namespaces", "processes")
"""How programs can be kept apart. What is registered is what holds, so none is called ``auto``."""

PLACES = ("here", "modal")
"""Where sandboxes can be: on this machine, or on Modal."""

_USUAL_COMPLETIONS, _USUAL_TESTS = 32, 4
_KINDS = {"hung": Kind.HUNG, "crashing": Kind.CRASHING, "wrong": Kind.WRONG}
_LEAST = {
    "completions": 0,
    "tests": 0,
    "wrong": 0,
    "hung": 0,
    "crashing": 0,
    "workers": 1,
    "warm": 0,
    "attempts": 1,
    "creations_at_once": 1,
}
_MOST = {"workers": MOST, "warm": MOST, "attempts": 100}


@dataclass(frozen=True, kw_only=True)
class SandboxSetting:
    """The parameters of ``sandbox_reward``, as explained there.

    Raises:
        ValueError: Some of them, or two together, can't be run; the message says of each what to write.
    """

    completions: int
    tests: int
    wrong: int
    hung: int
    crashing: int
    file: str
    workers: int
    warm: int
    isolation: str
    deadline: float
    cpu: float
    memory: int
    processes: int
    disk: int
    output: int
    packages: Sequence[str]
    attempts: int
    where: str
    creations_per_second: float
    creations_at_once: int

    def __post_init__(self) -> None:
        refuse(
            [
                *(count_problem(name, getattr(self, name), least) for name, least in _LEAST.items()),
                *(self._excess_problem(name, most) for name, most in _MOST.items()),
                word_problem("isolation", self.isolation, ISOLATIONS),
                word_problem("where", self.where, PLACES),
                rate_problem("creations_per_second", self.creations_per_second),
                self._limits_problem(),
                *self._package_problems(),
                None if isinstance(self.file, str) else f"file = {self.file!r}: give a path, or nothing",
            ]
        )
        refuse(self._modal_problems() if self.where == "modal" else self._here_problems())
        refuse(self._file_problems() if self.file else [self._kinds_problem()])

    def limits(self) -> Limits:
        """What each program may use."""
        return Limits(
            deadline=self.deadline,
            cpu=self.cpu,
            memory=self.memory,
            processes=self.processes,
            disk=self.disk,
            output=self.output,
        )

    def package_folders(self) -> list[Path]:
        """What programs may import from."""
        return [Path(folder).expanduser().resolve() for folder in self.packages]

    def batch(self, seed: int) -> CompletionFile:
        """Return what is graded, and the digest of the file that it is from; empty if it is from none.

        Raises:
            ValueError: The file can't be read or has fewer completions; the message says what to write.
        """
        if not self.file:
            counts = {kind: getattr(self, name) for name, kind in _KINDS.items()}
            kinds = kinds_of(counts, self._count, seed)
            return CompletionFile(completions_of(kinds, tests=self.tests or _USUAL_TESTS, seed=seed), "")
        read = read_completions(self.file)
        if self.completions > len(read.completions):
            raise ValueError(
                f"completions = {self.completions}, and {quoted(self.file)} has {len(read.completions)}: "
                "give at most so many, or 0 for all"
            )
        return read._replace(completions=read.completions[: self.completions or None])

    @property
    def _count(self) -> int:
        return self.completions or _USUAL_COMPLETIONS

    def _excess_problem(self, name: str, most: int) -> str | None:
        value = getattr(self, name)
        if not isinstance(value, int) or value <= most:
            return None
        return f"{name} = {value}: give a whole number of at most {most}"

    def _limits_problem(self) -> str | None:
        try:
            self.limits()
        except ValueError as error:
            return str(error)
        return None

    def _package_problems(self) -> list[str]:
        if not isinstance(self.packages, list | tuple) or not all(
            isinstance(each, str) for each in self.packages
        ):
            return [f"packages = {self.packages!r}: give a list of folders"]
        return [
            f"packages has {quoted(folder)}, which is no folder as seen from the study's: give one that is, "
            "or leave it out"
            for folder in self.packages
            if not Path(folder).expanduser().is_dir()
        ]

    def _modal_problems(self) -> list[str]:
        """Return what is asked for and is of this machine's sandboxes alone."""
        problems = []
        if self.isolation != "namespaces":
            problems.append(f'isolation = {quoted(self.isolation)} with where = "modal": leave it out')
        if self.packages:
            problems.append('packages with where = "modal", where programs have the standard library alone')
        return problems

    def _here_problems(self) -> list[str]:
        """Return what is asked for and is of Modal's sandboxes alone."""
        usual = {"creations_per_second": PER_SECOND, "creations_at_once": BURST}
        return [
            f'{name} = {getattr(self, name)} with where = "here", where no such limit is: leave it out'
            for name, value in usual.items()
            if getattr(self, name) != value
        ]

    def _file_problems(self) -> list[str]:
        return [
            f"{name} = {getattr(self, name)} with file = {quoted(self.file)}, which has its own: give 0"
            for name in ("tests", *_KINDS)
            if getattr(self, name)
        ]

    def _kinds_problem(self) -> str | None:
        given = {name: getattr(self, name) for name in _KINDS}
        if sum(given.values()) <= self._count:
            return None
        told = " + ".join(f"{name} = {count}" for name, count in given.items() if count)
        return f"{told} are more than completions = {self._count}: give fewer"
