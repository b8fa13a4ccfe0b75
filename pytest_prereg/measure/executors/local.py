"""Runs repeats on this machine, each in a fresh process forked from a server that has everything imported."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure import commands
from pytest_prereg.measure.devices import DeviceLocks, claims_of, gpus_here
from pytest_prereg.measure.executors import scratch, services
from pytest_prereg.measure.executors.base import TRACES, OneAtATime
from pytest_prereg.measure.executors.client import CLOSE_SECONDS, ForkServer
from pytest_prereg.measure.executors.environment import scrub
from pytest_prereg.measure.executors.messages import Setup
from pytest_prereg.registry.read_formats import unreadable_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pytest_prereg.evidence.gpu_readings import Gpu
    from pytest_prereg.measure.executors.base import Checkout, Job, Result
    from pytest_prereg.registry.model import Arm, Experiment, Source, Study

RESULTS = "pytest_prereg.evidence.importers.results"
"""Reads what commands leave behind; only those that leave anything need it."""


class LocalExecutor(OneAtATime):
    """The executor ``local``, for one experiment.

    Arms that set environment variables get a server each: many a library reads its variables when it is
    imported, and a fork would come too late for it.
    """

    name = "local"

    def __init__(
        self,
        study: Study,
        experiment: Experiment,
        *,
        environ: Mapping[str, str] | None = None,
        checkout: Checkout | None = None,
    ) -> None:
        super().__init__()
        if experiment.source is None and experiment.kind != "command":
            raise MeasureError(
                Problem(code="PR008", message=f'experiment "{experiment.id}" has nothing to run here')
            )
        self.study = study
        self.experiment = experiment
        self.folder = study.folder.resolve()
        self.setup = setup_for(experiment, self.folder)
        self.environ, scrubbed = scrub(os.environ if environ is None else environ)
        self.scrubbed: Sequence[str] = scrubbed
        self.outputs: list[Path] = []
        """Folders with what repeats printed that failed; they outlive the executor."""
        self.waiting: Callable[[], None] | None = None
        self.checkout = checkout
        """Where arms that are code versions run."""
        self._locks = DeviceLocks()
        self._prepared: Job | None = None
        """For which the locks are held."""
        self._gpus: tuple[Gpu, ...] | None = None
        self._servers: dict[frozenset[tuple[str, str]], ForkServer] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the servers of all arms and wait for their imports.

        Raises:
            MeasureError: If the experiment can't be imported, its results can't be read here, or a version
                of its arms can't be had; then nothing is left running.
        """
        if problem := unreadable_format(self.study, self.experiment):
            raise MeasureError(problem)
        self._gpus = gpus_here()
        try:
            if self.checkout is not None:
                self.checkout.start()
            servers = [self._server(arm_environment(self.experiment, arm)) for arm in self._arms()]
            for server in servers:
                server.wait_until_ready(self.experiment.id)
        except BaseException:
            self.close()
            raise

    def prepare(self, job: Job) -> None:
        """Take the devices that ``job`` needs; wait as long as others measure on them.

        Raises:
            MeasureError: PR133, if they can't be locked.
        """
        self._release()
        environ = {**self.environ, **job.env}
        self._locks.take(claims_of(job.exclusive, self._gpus, environ), waiting=self.waiting)
        self._prepared = job

    def run(self, job: Job) -> Result:
        """Run one repeat to its end; a server that had died is started anew first."""
        if self._prepared is not job:
            self.prepare(job)
        try:
            result = self._run(job)
        finally:
            waited = {"waited": self._locks.waited} if self._locks.waited else {}
            self._release()
        return msgspec.structs.replace(result, seconds={**result.seconds, **waited})

    def _run(self, job: Job) -> Result:
        server = self._servers.get(frozenset(job.env.items()))
        if server is None or not server.alive:
            server = self._restarted(job.env)
        if self.checkout is None:
            return server.run(job, self._locks.descriptors)
        return self._run_version(server, job, self.checkout)

    def _run_version(self, server: ForkServer, job: Job, checkout: Checkout) -> Result:
        """Run one repeat of an arm where its version is, and look whether it was of that alone."""
        with scratch.folder(server.folder / "traces") as traces:
            result = server.run(_placed(job, *checkout.place_of(job.arm), traces), self._locks.descriptors)
            problem = checkout.problem_of(job.arm, traces)
        if problem is None:
            return result
        if result.outcome is Outcome.OK:
            return msgspec.structs.replace(result, outcome=Outcome.INVALID, cause=problem)
        told = [*result.diagnostics.get("problems", ()), problem]
        return msgspec.structs.replace(result, diagnostics={**result.diagnostics, "problems": told})

    def _release(self) -> None:
        self._prepared = None
        self._locks.release()

    def close(self) -> None:
        """Stop everything that runs, at once; returns within two seconds."""
        self._release()
        deadline = time.monotonic() + CLOSE_SECONDS
        servers = list(self._servers.values())
        for server in servers:
            server.hang_up()
        for server in servers:
            self._close(server, deadline)
        self._servers.clear()
        if self.checkout is not None:
            self.checkout.close()

    def _close(self, server: ForkServer, deadline: float) -> None:
        server.close(deadline)
        if server.folder.exists():
            self.outputs.append(server.folder)

    def _arms(self) -> list[Arm]:
        """Return one arm for each environment."""
        arms = self.experiment.arms.values()
        return list({frozenset(arm_environment(self.experiment, arm).items()): arm for arm in arms}.values())

    def _server(self, env: Mapping[str, str]) -> ForkServer:
        fresh = self.experiment.table.cache == "fresh"
        try:
            server = ForkServer(self.setup, cwd=self.folder, environ={**self.environ, **env}, fresh=fresh)
        except OSError as error:
            message = f'no process can be started for experiment "{self.experiment.id}": {error}'
            raise MeasureError(Problem(code="PR131", message=message)) from error
        self._servers[frozenset(env.items())] = server
        return server

    def _restarted(self, env: Mapping[str, str]) -> ForkServer:
        dead = self._servers.pop(frozenset(env.items()), None)
        if dead is not None:
            self._close(dead, time.monotonic() + CLOSE_SECONDS)
        server = self._server(env)
        server.wait_until_ready(self.experiment.id)
        return server


def arm_environment(experiment: Experiment, arm: Arm) -> dict[str, str]:
    """Return the variables that an arm's repeats see beside the user's own."""
    return {**(experiment.table.env or {}), **arm.env}


def _placed(job: Job, folder: str, variables: Mapping[str, str], traces: Path) -> Job:
    """Return a job whose command and service run in the folder of their version."""
    env = {**variables, TRACES: str(traces)}
    run = {"command": job.command, "service": job.service}
    here = {name: msgspec.structs.replace(what, folder=folder, env=env) for name, what in run.items() if what}
    return msgspec.structs.replace(job, **here)


def setup_for(experiment: Experiment, folder: Path) -> Setup:
    """Return what a fork server imports for an experiment whose study lies in ``folder``."""
    source = experiment.source
    if source is None:
        return _setup_for_command(experiment)
    preload = [*source.preload, *(experiment.table.preload or ()), *services.modules_for(experiment)]
    return Setup(
        module=source.module,
        function=source.function,
        file=None if source.path is None else str(source.path.resolve()),
        paths=_paths(source, folder),
        preload=list(dict.fromkeys(preload)),
        client=0,
    )


def _setup_for_command(experiment: Experiment) -> Setup:
    """Nothing of the user's is imported: what is next to the study has no part in a command."""
    return Setup(
        module=commands.__name__,
        function=commands.run.__name__,
        file=None,
        paths=[],
        preload=[*services.modules_for(experiment), *([] if experiment.table.read is None else [RESULTS])],
        client=0,
    )


def _paths(source: Source, folder: Path) -> list[str]:
    """Return the study's folder, and the folder under which the module's dotted name is found."""
    if source.path is None:
        return [str(folder)]
    file = source.path.resolve()
    levels = source.module.count(".") + (file.name == "__init__.py")
    return list(dict.fromkeys([str(folder), str(file.parents[levels])]))
