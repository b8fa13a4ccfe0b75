"""The app of a session on Modal: one function for each kind of container that the arms ask for.

It is detached: what runs there outlives this process, and another session takes it up by its call.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.measure.executors.modal import faults, inside
from pytest_prereg.measure.executors.modal.image import image_for
from pytest_prereg.measure.executors.services import service_of
from pytest_prereg.measure.executors.supervisor import START_SECONDS

if TYPE_CHECKING:
    from pytest_prereg.measure.executors.modal.image import Files
    from pytest_prereg.registry.model import Arm, Experiment, Study

DAY = 24 * 3600.0
"""No function of Modal's runs longer."""
IMPORT_SECONDS = 900.0
"""What imports in a container may take."""
MARGIN = 60.0
MEBIBYTE = 1 << 20
LONGEST_NAME = 63
CHANGED = "modified during build"
"""What Modal's client says of a file that changes while it is sent."""


class App:
    """A detached app, from its images to its last container."""

    def __init__(self, study: Study, experiment: Experiment, files: Files) -> None:
        self.study = study
        self.experiment = experiment
        self.files = files
        self.functions: dict[str, Any] = {}
        """What runs a repeat, by arm."""
        self.probe: Any = None
        """What looks whether one could run, in the container of the first arm."""
        self.seconds = 0.0
        """What building the image and publishing took."""
        self._app: Any = None
        self._running = contextlib.ExitStack()

    @property
    def id(self) -> str:
        """What Modal calls it."""
        return self._app.app_id or ""

    def start(self) -> None:
        """Build the image, where that has not been done, and publish the functions.

        Raises:
            MeasureError: PR137, PR138 or PR139.
        """
        import modal  # noqa: PLC0415

        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="prereg-") as folder:
                self._define(Path(folder))
                self._running.enter_context(self._app.run(detach=True))
        except modal.exception.Error as error:
            raise MeasureError(refusal(error, self.experiment)) from None
        self.seconds = time.monotonic() - began

    def stop(self) -> None:
        """End all that runs in it; raise whatever Modal's client raises."""
        try:
            if self._app is not None and self._app.app_id:
                self._app.stop()
        finally:
            self.leave()

    def leave(self) -> None:
        """Let it run, and have no more to do with it; raise whatever Modal's client raises."""
        self._running.close()

    def _define(self, compiled: Path) -> None:
        import modal  # noqa: PLC0415

        name = f"prereg-{self.study.id}-{self.experiment.id}"[:LONGEST_NAME]
        tags = {"study": self.study.id[:LONGEST_NAME], "experiment": self.experiment.id[:LONGEST_NAME]}
        self._app = modal.App(name, tags=tags)
        image = image_for(self.study, self.experiment, self.files, compiled)
        made: dict[tuple[Any, float], Any] = {}
        for arm in self.experiment.arms.values():
            kind = (arm.resources, longest(self.experiment, arm))
            if kind not in made:
                made[kind] = self._function(inside.run, f"run_{len(made)}", arm, image)
            self.functions[arm.name] = made[kind]
        first = next(iter(self.experiment.arms.values()))
        self.probe = self._function(inside.look, "look", first, image)

    def _function(self, run: Any, name: str, arm: Arm, image: Any) -> Any:
        """Return a function of the app that runs ``run``; each input has a container of its own, once."""
        return self._app.function(
            image=image,
            name=name,
            timeout=math.ceil(longest(self.experiment, arm)),
            retries=0,
            single_use_containers=True,
            include_source=False,
            **self._place(arm),
        )(run)

    def _place(self, arm: Arm) -> dict[str, Any]:
        """Return what the function's containers have: hardware, region, volumes and secrets."""
        import modal  # noqa: PLC0415

        asked, table = arm.resources, self.study.executors.modal
        memory = None if asked.memory is None else math.ceil(asked.memory / MEBIBYTE)
        volumes = (table.volumes if table else None) or {}
        secrets = (table.secrets if table else None) or []
        return {
            "gpu": asked.gpu,
            "cpu": asked.cpu,
            "memory": memory,
            "region": table.region if table else None,
            "volumes": {path: modal.Volume.from_name(name) for path, name in volumes.items()},
            "secrets": [modal.Secret.from_name(name) for name in secrets],
        }


def longest(experiment: Experiment, arm: Arm) -> float:
    """Return the seconds after which Modal ends a container: only where its own supervisor has not.

    Whoever had imported by then had its whole time, however long its service took to start.
    """
    whole = _around(experiment) + (DAY if arm.timeout is None else arm.timeout)
    return min(DAY, whole)


def longest_body(experiment: Experiment) -> float:
    """Return the longest timeout of a body that Modal leaves room for."""
    return DAY - _around(experiment)


def _around(experiment: Experiment) -> float:
    service = service_of(experiment)
    return IMPORT_SECONDS + START_SECONDS + (service.seconds if service else 0.0) + MARGIN


def refusal(error: BaseException, experiment: Experiment) -> Problem:
    """Return why an app can't be started: for want of Modal, of an image, or of what was asked for."""
    import modal.exception as said  # noqa: PLC0415

    told, name = faults.told(error), experiment.id
    if faults.is_silence(error) or isinstance(error, said.AuthError | said.PermissionDeniedError):
        return Problem(code="PR137", message=f"Modal can't be used: {told}")
    if isinstance(error, said.RemoteError):
        message = f'the image of experiment "{name}" can\'t be built: {told}'
        return Problem(code="PR138", message=message, advice="See its log at https://modal.com/apps.")
    if CHANGED in told:
        message = f'a file of experiment "{name}" was changed while it was sent to Modal: {told}'
        return Problem(code="PR139", message=message, advice="The same command sends it again.")
    message = f'Modal can\'t run experiment "{name}" as it asks to be run: {told}'
    advice = 'Look at [executors.modal], and at "resources".'
    return Problem(code="PR139", message=message, advice=advice)
