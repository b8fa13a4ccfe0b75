"""What every executor does: take one repeat at a time to where it runs, and say how it ended."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import msgspec

from pytest_prereg.evidence.model import Outcome, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.registry.model import Experiment, Study


class Service(msgspec.Struct, kw_only=True, frozen=True):
    """A server that one repeat talks to: started before its body, and stopped with it."""

    command: list[str]
    """As written: ``{port}`` and the job's parameters are yet to be filled in."""
    ready: str | None = None
    """As written: an address, ``tcp``, or a text of its output; ``None`` is ``tcp``."""
    seconds: float
    """How long it may take until it is ready."""
    folder: str | None = None
    """Where it is run; ``None`` is the study's folder."""
    env: dict[str, str] = {}
    """Variables that it sees beside the arm's: of the version that it is run in."""


class Command(msgspec.Struct, kw_only=True, frozen=True):
    """What is run in place of a function, once per repeat."""

    arguments: list[str]
    """As written: parameters, ``{out}`` and ``{port}`` are yet to be filled in."""
    file: str | None = None
    """Result file, as written; ``-`` is the standard output; ``None`` if nothing is read."""
    form: str = ""
    """Format of the file."""
    select: str | None = None
    fields: dict[str, tuple[str, str]] = {}
    """By metric that is read from the file, the name of the reading and the declared unit."""
    needed: list[str] = []
    """Metrics of those that every command has without which the repeat would be invalid."""
    status_is_data: bool = False
    """Whether a status other than 0 is a value, and no failure."""
    folder: str | None = None
    """Where it is run; ``None`` is the study's folder."""
    env: dict[str, str] = {}
    """Variables that it sees beside the arm's: of the version that it is run in."""


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """One repeat to be run."""

    repeat: str
    """Its id, as in the evidence."""
    arm: str
    index: int
    seed: int
    metrics: dict[str, str]
    """Unit by declared metric."""
    params: dict[str, Any] = {}
    env: dict[str, str] = {}
    timeout: float | None = None
    """Seconds from the start of the body."""
    checkpoint: str | None = None
    """Folder that outlives a lost attempt."""
    service: Service | None = None
    command: Command | None = None
    """What is run in place of the experiment's function."""
    cache: Literal["shared", "fresh"] = "shared"
    """Whether compilers find what earlier repeats have compiled."""
    exclusive: bool = True
    """Whether nothing else may be measured on the machine meanwhile."""
    mark: str | None = None
    """What the attempt is known by before it has a call; of one attempt no body begins twice."""


class Result(msgspec.Struct, kw_only=True, frozen=True):
    """How one attempt at a repeat ended; the fields are those of the evidence's ``finished`` line."""

    outcome: Outcome
    values: dict[str, Value] = {}
    diagnostics: dict[str, Any] = {}
    instruments: dict[str, str] = {}
    samples: dict[str, int] = {}
    cause: str | None = None
    error: str | None = None
    seconds: dict[str, float] = {}
    environment: dict[str, Any] = {}
    resumed: bool = False
    """Whether it found a checkpoint that an earlier attempt had left."""
    unreadable: dict[str, str] = {}
    restarts: int = 0
    """How often the service had begun the same repeat before, and told nobody."""


TRACES = "PREREG_TRACES"
"""Variable that names a folder of one repeat alone, for whatever its version leaves for :class:`Checkout`."""


class Checkout(Protocol):
    """The code versions that arms are of: each in a folder of its own, with what it was built into."""

    def start(self) -> None:
        """Check out and build; raise ``MeasureError`` (PR134, PR135), with nothing left, if that fails."""

    def place_of(self, arm: str) -> tuple[str, dict[str, str]]:
        """Return the folder that an arm is run in, and the variables to set for it."""

    def problem_of(self, arm: str, workdir: Path) -> str | None:
        """Return why a repeat that has ended is none of its version, ``None`` if it is one.

        ``workdir`` is the folder that ``PREREG_TRACES`` named to all that the repeat ran.
        """

    def close(self) -> None:
        """Leave nothing behind."""


class Executor(Protocol):
    """Where repeats run; :meth:`close` may interrupt it at any moment."""

    waiting: Callable[[], None] | None
    """Called when a repeat has to wait, before it is launched, for what another session holds."""
    outputs: list[Path]
    """Folders with what repeats printed that failed; they outlive the executor."""

    @property
    def scrubbed(self) -> Sequence[str]:
        """Variables that repeats don't see, though this process has them."""

    @property
    def name(self) -> str:
        """Name in the study file and in the evidence."""

    @property
    def parallel(self) -> int:
        """How many repeats may run at a time."""

    def start(self) -> None:
        """Get ready to run; raise ``MeasureError``, with nothing left running, if that is impossible."""

    def prepare(self, job: Job) -> None:
        """Wait until a repeat may be launched: for its devices, where others measure on them.

        Called before its ``started`` line is written, so that giving up the wait loses no attempt.
        Nothing of the repeat runs yet. Raise ``MeasureError`` if it never can.
        """

    def launch(self, job: Job) -> str | None:
        """Begin a repeat; return what finds it again in another process, ``None`` where nothing does.

        What goes wrong is how it ended, which :meth:`collect` tells.
        """

    def attach(self, job: Job, call: str) -> bool:
        """Take up a repeat that an earlier session launched; return ``False`` where it is not known any more.

        ``call`` is what :meth:`launch` returned there, or :meth:`find` here.
        """

    def mark_for(self, job: Job) -> str | None:
        """Return what an attempt is to be known by before it is launched; ``None`` where it can't be."""

    def remembers(self, mark: str) -> bool:
        """Return whether it can tell if a body was begun under a mark that an earlier session wrote down."""

    def find(self, job: Job) -> str | None:
        """Return the call that has begun what the mark of a job stands for, ``None`` where none has yet.

        Only of marks that it remembers. What was not begun can be launched under the same mark: should both
        reach the service after all, only one of them begins its body, and its end is that of the other.
        """

    def collect(self) -> tuple[Job, Result]:
        """Wait until one of those that were launched has ended; never raise for what a body does.

        Raises:
            LookupError: None was launched.
        """

    def close(self) -> None:
        """Stop everything that runs, wherever; return within five seconds. It can be started again."""

    def rates(self) -> Mapping[str, float] | None:
        """Return USD an hour by arm, as they are now; ``None`` where it knows none.

        Asked once it is started. What a study's ``[study.prices]`` says counts only where this is ``None``.
        """

    @property
    def about(self) -> Mapping[str, Any]:
        """What it says of itself once it is started, for the header: ``backend``, image, and ``python``.

        All of it is kept as it is. On what machine a repeat ran, that repeat says in its environment.
        """


class Elsewhere:
    """What an executor whose repeats run on other machines is built on: all that it need not say itself.

    It is made anew for each experiment of a run. How a repeat ended is a :class:`Result`, whose ``seconds``
    has ``queue`` (until its machine began), ``launch`` (until the body did), ``body`` and ``total`` (what is
    paid for), and whose ``environment`` says where it ran, as ``describe_machine`` does: ``gpu``, ``cpu``,
    ``driver``, and ``region`` and ``backend``.
    """

    name: ClassVar[str]
    parallel = 1
    """How many repeats it may run at a time."""
    scrubbed: Sequence[str] = ()

    def __init__(
        self,
        study: Study,
        experiment: Experiment,
        *,
        checkout: Checkout | None = None,
    ) -> None:
        self.study = study
        self.experiment = experiment
        self.checkout = checkout
        self.outputs: list[Path] = []
        self.waiting: Callable[[], None] | None = None
        self.about: Mapping[str, Any] = {}

    def start(self) -> None:
        """Get ready: there is nothing to do."""

    def prepare(self, job: Job) -> None:
        """Wait for nothing."""

    def launch(self, job: Job) -> str | None:
        """Begin a repeat, and return what finds it again."""
        raise NotImplementedError

    def attach(self, job: Job, call: str) -> bool:  # noqa: ARG002 - an interface
        """Find nothing of an earlier session."""
        return False

    def mark_for(self, job: Job) -> str | None:  # noqa: ARG002 - an interface
        """Know an attempt by its call alone."""
        return None

    def remembers(self, mark: str) -> bool:  # noqa: ARG002 - an interface
        """Know nothing of marks."""
        return False

    def find(self, job: Job) -> str | None:  # noqa: ARG002 - an interface
        """Never be asked."""
        return None

    def collect(self) -> tuple[Job, Result]:
        """Wait until a repeat has ended."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop all: nothing runs."""

    def rates(self) -> Mapping[str, float] | None:
        """Know no prices."""
        return None


class OneAtATime:
    """An executor whose repeats run while they are waited for, one after the other."""

    parallel = 1
    about: Mapping[str, Any] = MappingProxyType({})
    """Nothing: the header describes this machine."""

    def __init__(self) -> None:
        self._launched: list[Job] = []

    def rates(self) -> Mapping[str, float] | None:
        """Know no prices."""
        return None

    def run(self, job: Job) -> Result:
        """Run one repeat to its end and return how it ended; never raise for what the body does."""
        raise NotImplementedError

    def launch(self, job: Job) -> str | None:
        """Note the repeat: it ends with this process."""
        self._launched = [job]
        return None

    def attach(self, job: Job, call: str) -> bool:  # noqa: ARG002 - nothing outlives its session
        """Find nothing of an earlier session."""
        return False

    def mark_for(self, job: Job) -> str | None:  # noqa: ARG002 - nothing outlives its session
        """Know attempts by nothing: they end with this process."""
        return None

    def remembers(self, mark: str) -> bool:  # noqa: ARG002 - nothing outlives its session
        """Know nothing of marks."""
        return False

    def find(self, job: Job) -> str | None:  # noqa: ARG002 - nothing outlives its session
        """Never be asked."""
        return None

    def collect(self) -> tuple[Job, Result]:
        """Run what was launched."""
        if not self._launched:
            raise LookupError
        job = self._launched.pop()
        return job, self.run(job)
