"""What the format has and this version does not do yet, refused rather than ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.executors import LOCAL, check_executor
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.resources import resources_text
from pytest_prereg.registry.structure import Complaints, label
from pytest_prereg.registry.toml import positions_of, shown
from pytest_prereg.registry.versions import refs_of

if TYPE_CHECKING:
    from pytest_prereg.errors import Problem
    from pytest_prereg.registry.model import Experiment, Study
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.tables import ExperimentTable, Table

OF_WHAT_RUNS = ("data", "subject")
"""Keys whose files are hashed when a repeat is run; what is imported says nothing of them."""
OF_A_MACHINE = ("conditions", "exclude", "max-excluded", "warmup")
"""Keys over what is recorded of the machine, or done on it; what is imported brings no such record."""
OF_WHERE = ("executor", "resources", "max-parallel")
"""Keys of where repeats run; what is imported ran elsewhere already."""
ON_THIS_MACHINE = (
    'Name an executor that has such machines, as in executor = "modal"; what this one has to be is for '
    '"conditions" to say.'
)


def not_yet(study: Study) -> list[Problem]:
    """A PR008 problem for each key of a study whose feature is not there yet; ``lock`` refuses them."""
    complaints = Complaints(shown(study.path), positions_of(study.path))
    for name in study.table.prices or {}:
        _executor(("study", "prices", name), name, complaints)
    if study.executors.slurm is not None:
        _executor(("executors", "slurm"), "slurm", complaints)
    for name, experiment in study.experiments.items():
        keys = ("experiments", name)
        _experiment(keys, experiment, complaints)
        if experiment.kind == "import":
            _imported(keys, experiment.table, complaints)
    return sorted(complaints.problems, key=lambda problem: problem.line or 0)


def _imported(keys: Path, table: ExperimentTable, complaints: Complaints) -> None:
    """What only the tool's own repeats can have."""
    for key in OF_WHAT_RUNS:
        if getattr(table, key):
            _complain((*keys, key), f"{quoted(key)} of what is fed by import", complaints)
    written = _without_defaults(table)
    for key in OF_A_MACHINE:
        if written.get(key):
            why = "the tool saw none of its repeats, and knows nothing of their machine"
            message = f"{label(keys)} is fed by import and has {quoted(key)}: {why}"
            complaints.add((*keys, key), "PR008", message, "Leave it out.")
    for key in OF_WHERE:
        if key in written:
            message = (
                f"{label(keys)} is fed by import and has {quoted(key)}: the tool runs none of its repeats"
            )
            complaints.add((*keys, key), "PR008", message, "Leave it out.")


def _experiment(keys: Path, experiment: Experiment, complaints: Complaints) -> None:
    table = experiment.table
    if table.executor != LOCAL:
        _executor((*keys, "executor"), table.executor, complaints)
        if refs_of(experiment):
            _complain((*keys, "executor"), '"ref" of arms that run elsewhere', complaints)
    elif experiment.kind != "import":
        _here(keys, experiment, complaints)
    if table.service is not None and table.service.scope == "series":
        _one_server(keys, complaints)


def _executor(keys: Path, name: str, complaints: Complaints) -> None:
    """Refuse an executor that nothing brings, or nothing yet."""
    complaints.attempt(keys, label(keys[:-1]), check_executor, name)


def _here(keys: Path, experiment: Experiment, complaints: Complaints) -> None:
    """What only a service can do: this machine is as it is, and is measured on by one repeat at a time."""
    if experiment.table.max_parallel > 1:
        _complain((*keys, "max-parallel"), '"max-parallel" on this machine', complaints)
    for name, arm in experiment.arms.items():
        if asked := resources_text(arm.resources):
            own = "resources" in (experiment.table.arms or {}).get(arm.base or name, {})
            here = (*keys, "arms", arm.base or name, "resources") if own else (*keys, "resources")
            if not complaints.told(*here):
                message = f"{label(here[:-1])} asks for {asked}, and this machine is what it is"
                complaints.add(here, "PR008", message, ON_THIS_MACHINE)


def _one_server(keys: Path, complaints: Complaints) -> None:
    """Refuse a server that outlives a repeat: not because it is hard to start, but for what it would show."""
    message = 'with scope = "series" all repeats talk to one server, which makes n = 1 and decides nothing'
    advice = 'Leave "scope" out: a server for each repeat.'
    complaints.add((*keys, "service", "scope"), "PR024", f"{label(keys)}: {message}", advice)


def _without_defaults(table: Table) -> dict[str, Any]:
    defaults = dict(zip(table.__struct_fields__[::-1], table.__struct_defaults__[::-1], strict=False))
    return {
        written: getattr(table, field)
        for field, written in zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True)
        if getattr(table, field) != defaults.get(field)
    }


def _complain(keys: Path, what: str, complaints: Complaints) -> None:
    complaints.add(keys, "PR008", f"{label(keys[:-1])}: {_not_yet(what)}")


def _not_yet(what: str) -> str:
    return f"{what} is not supported yet, so nothing that has it can be registered"
