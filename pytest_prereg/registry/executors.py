"""Where repeats can run: this machine, a service, or what a plugin brings; and how a study has it set up."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_prereg.registry.refusals import RefusedError, listed, nearest, quoted
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import ExecutorsTable, ModalTable

LOCAL = "local"
MODAL = "modal"
KNOWN = (LOCAL, MODAL)
"""Executors of the package's own."""
NOT_YET = ("slurm",)
"""What the format has, and this release can't run anything on."""


def check_executor(name: str) -> None:
    """Refuse an executor that nothing brings; plugins are loaded where it is none of the package's.

    Raises:
        RefusedError: PR008: not there yet; PR007: there is none of that name; PR127: a plugin is broken.
    """
    if name in KNOWN:
        return
    if name in NOT_YET:
        raise RefusedError("PR008", f"executor {quoted(name)} is not supported yet; there is {listed(KNOWN)}")
    from pytest_prereg.registry.plugins import brought_executors  # noqa: PLC0415  # seldom needed

    known = [*KNOWN, *brought_executors()]
    if name not in known:
        near = nearest(name, known)
        hint = f"; did you mean {quoted(near)}?" if near else f"; there is {listed(known)}"
        raise RefusedError("PR007", f"no executor is called {quoted(name)}{hint}")


def check_executors(executors: ExecutorsTable | None, complaints: Complaints) -> None:
    """Complain about what no service could be set up with."""
    if executors is not None and executors.modal is not None:
        _check_modal(("executors", "modal"), executors.modal, complaints)


def _check_modal(keys: Path, table: ModalTable, complaints: Complaints) -> None:
    named = {"image": table.image, "region": table.region}
    for key, text in named.items():
        if text is not None and not _is_name(text):
            complaints.add((*keys, key), "PR005", f"{_of(keys, key)} is {quoted(text)}, which names nothing")
    for name in table.secrets or ():
        if not _is_name(name):
            message = f"{_of(keys, 'secrets')} has {quoted(name)}; each is named as the service keeps it"
            advice = "A secret itself belongs into no file: give it a name there."
            complaints.add((*keys, "secrets"), "PR005", message, advice)
    for path, name in (table.volumes or {}).items():
        _check_volume((*keys, "volumes"), path, name, complaints)


def _check_volume(keys: Path, path: str, name: str, complaints: Complaints) -> None:
    place = PurePosixPath(path)
    if not place.is_absolute() or ".." in place.parts or place == PurePosixPath("/"):
        message = f"{label(keys)}: {quoted(path)} is no folder that a volume can be mounted at"
        advice = 'Write volumes = { "/weights" = "name-of-the-volume" }.'
        complaints.add((*keys, path), "PR005", message, advice)
    if not _is_name(name):
        complaints.add((*keys, path), "PR005", f"{label(keys)}: {quoted(name)} is no name of a volume")


def _of(keys: Path, key: str) -> str:
    return f"[{'.'.join(map(str, keys))}]: {quoted(key)}"


def _is_name(text: str) -> bool:
    return bool(text.strip()) and text == text.strip() and text.isprintable()
