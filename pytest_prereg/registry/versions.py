"""Arms that are versions of the code: ``ref`` in their tables, and the ``build`` of each version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.placeholders import placeholders
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Arm, Experiment
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import ExperimentTable

WORK_TREE = "worktree"
"""The ref of what is in the work tree."""
MERGE_BASE = "merge-base:"
"""Before a revision: the commit at which HEAD left it."""


def refs_of(experiment: Experiment) -> dict[str, str]:
    """The ``ref`` of each arm, by its name in the file; empty where arms are no versions of the code."""
    return _refs(experiment.table)


def version_name(arm: Arm) -> str:
    """The name in the file of an arm: those that a sweep makes of one are one version of the code."""
    return arm.base if arm.point else arm.name


def check_versions(keys: Path, table: ExperimentTable, complaints: Complaints) -> None:
    """Complain about versions that can't be, and about a ``build`` of none."""
    refs = _refs(table)
    if refs and table.command is None and not complaints.told(*keys, "command"):
        where = (*keys, "arms", next(iter(refs)), "ref")
        why = "a fixture is imported as the work tree has it" if table.fixture else "nothing is run here"
        message = f'{label(keys)}: "ref" needs a "command", to be run in that version; {why}'
        complaints.add(where, "PR005", message)
    lacking = [name for name, arm in (table.arms or {}).items() if "ref" not in arm]
    if refs and lacking:
        message = f'{label(keys)}: arm {quoted(lacking[0])} has no "ref", and {listed(refs)} has'
        advice = f'If it is the work tree as it stands, say so: {lacking[0]} = {{ ref = "{WORK_TREE}" }}'
        complaints.add((*keys, "arms", lacking[0]), "PR005", message, advice)
    for name, ref in refs.items():
        if wrong := _wrong(ref):
            here = (*keys, "arms", name)
            complaints.add((*here, "ref"), "PR005", f'{label(here)}: "ref" is {quoted(ref)}{wrong}')
    if table.build is not None and not complaints.told(*keys, "build"):
        _check_build(keys, table.build, complaints, are_versions=bool(refs))


def _refs(table: ExperimentTable) -> dict[str, str]:
    written = {name: arm.get("ref") for name, arm in (table.arms or {}).items()}
    return {name: ref for name, ref in written.items() if isinstance(ref, str)}


def _wrong(ref: str) -> str | None:
    """What keeps a text from being a version; whether there is such a revision is asked when it is needed."""
    revision = ref.removeprefix(MERGE_BASE)
    if not revision.strip() or revision != revision.strip() or not revision.isprintable():
        return f', which names no revision; write "{WORK_TREE}", "{MERGE_BASE}origin/main", a branch or a tag'
    if revision.startswith("-"):
        return ", which git would take for an option"
    if ".." in revision:
        return f', which is a range; write one revision, or "{MERGE_BASE}…" for where HEAD left another'
    return None


def _check_build(keys: Path, build: list[str], complaints: Complaints, *, are_versions: bool) -> None:
    here = (*keys, "build")
    named = [name for argument in build for name in placeholders(argument)]
    if not build or not build[0]:
        complaints.add(here, "PR005", f'{label(keys)}: "build" names no program; leave it out')
    elif nul := next((argument for argument in build if "\0" in argument), None):
        message = f'{label(keys)}: "build" has a NUL in {quoted(nul)}, which no program can be given'
        complaints.add(here, "PR005", message)
    elif named:
        message = f'{label(keys)}: "build" has {quoted("{" + named[0] + "}")}, and nothing is filled in there'
        advice = "It is run once for each version, before there is any repeat."
        complaints.add(here, "PR005", message, advice)
    elif not are_versions:
        message = f'{label(keys)}: "build" makes a version of the code, and no arm has a "ref"'
        advice = 'Give each arm one, such as { ref = "worktree" }, or build before you measure.'
        complaints.add(here, "PR005", message, advice)
