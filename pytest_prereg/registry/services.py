"""What a ``service`` must say to be started: a command that can be filled in, and when it is ready."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_prereg.registry.durations import parse_duration
from pytest_prereg.registry.placeholders import PORT, misplaced, placeholders
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_prereg.registry.model import Arm
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import ExperimentTable, ServiceTable

_URL = re.compile(r"http://[^/:]+(:(\d+|\{\w+\}))?(/.*)?", re.DOTALL)
_OTHER_URL = re.compile(r"[a-z]+://", re.IGNORECASE)


def check_service(
    keys: Path, table: ExperimentTable, arms: Mapping[str, Arm], complaints: Complaints
) -> None:
    """Complain about a service that could never be started for some arm, or never be found ready."""
    service, here = table.service, (*keys, "service")
    if service is None or complaints.told(*here):
        return
    is_run = table.fixture is not None or table.command is not None
    if not is_run and not any(complaints.told(*keys, key) for key in ("fixture", "command")):
        message = f'{label(keys)}: "service" is for what runs; what is fed by import talks to no server'
        complaints.add(here, "PR005", message)
    if not service.command and not complaints.told(*here, "command"):
        complaints.add((*here, "command"), "PR005", f'{label(keys)}: "command" of "service" is empty')
    for name, arm in arms.items() if not complaints.told(*keys, "params") else ():
        where = f"{label(keys)}, arm {quoted(name)}" if name else label(keys)
        if _complained(here, where, service, arm, complaints):
            break  # the other arms would say the same
    _check_ready(here, label(keys), service, complaints)
    try:
        parse_duration(service.timeout)
    except RefusedError as refusal:
        complaints.refuse((*here, "timeout"), f'{label(keys)}, "timeout" of "service"', refusal)


def _complained(here: Path, where: str, service: ServiceTable, arm: Arm, complaints: Complaints) -> bool:
    problems = list(_problems(service, arm))
    for key, code, message in problems:
        complaints.add((*here, key), code, f'{where}: {quoted(key)} of "service" {message}')
    return bool(problems)


def _problems(service: ServiceTable, arm: Arm) -> Iterator[tuple[str, str, str]]:
    """Key, code and message for each placeholder that nothing can take the place of."""
    if PORT in arm.params and _names_port(service):
        yield "command", "PR005", 'has "{port}", which is the free port and a parameter; rename the parameter'
    texts = [("command", argument) for argument in service.command]
    for key, text in [*texts, *([("ready", service.ready)] if service.ready is not None else [])]:
        for code, message in misplaced(text, arm.params, own=(PORT,), splices=key == "command"):
            yield key, code, message


def _check_ready(here: Path, where: str, service: ServiceTable, complaints: Complaints) -> None:
    ready = service.ready
    if ready in (None, "tcp"):
        if service.command and not (_names_port(service) or complaints.told(*here, "command")):
            message = (
                f'{where}: "command" of "service" has no "{{port}}", so its port can\'t be watched; '
                "add it, or say when it is ready: an address, or a text of its output"
            )
            complaints.add((*here, "command"), "PR005", message)
    elif not ready.strip():
        complaints.add((*here, "ready"), "PR005", f'{where}: "ready" of "service" is empty')
    elif _OTHER_URL.match(ready) and not _URL.fullmatch(ready):
        message = (
            f'{where}: "ready" of "service" is {quoted(ready)}; write "http://localhost:{{port}}/health"'
        )
        complaints.add((*here, "ready"), "PR005", message)


def _names_port(service: ServiceTable) -> bool:
    return any(PORT in placeholders(argument) for argument in service.command)
