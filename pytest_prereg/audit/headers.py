"""What sessions say of their plan, held against the registration that they bind: PR207.

How many repeats there are to be, how arms are paired, and what order and seeds are drawn from, a session only
repeats in its header. Who could choose any of it there would choose which repeats count, which arm comes
first, or which random numbers a body gets: and whoever edits a file before its first commit can write a last
line that fits.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_prereg.audit.standing import read_arms
from pytest_prereg.errors import Problem
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.series import common_bindings
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.registry.executors import LOCAL
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.versions import refs_of, version_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Header
    from pytest_prereg.registry.model import Experiment, Prediction, Study

Files = dict[str, "list[SessionFile]"]
"""Session files by experiment."""

ADVICE = "Evidence is never edited: bring it back as it was written, or say why its series is void."


def checked(study: Study, digests: Mapping[str, str], files: Files) -> Files:
    """Return the files, those with another plan or seed than their registration gives with a problem more.

    A session of an earlier registration, or of none, is left alone: it was planned for that, and decides
    nothing that is registered now.

    Args:
        study: As it is now.
        digests: Registration digests of its predictions, by id.
        files: All of its session files, by experiment.
    """
    found = {
        name: _strayed(study, digests, study.experiments[name], several)
        for name, several in files.items()
        if name in study.experiments
    }
    return {
        name: [_with(file, found.get(name, {}).get(file.path.name, ())) for file in several]
        for name, several in files.items()
    }


def _with(file: SessionFile, problems: Iterable[Problem]) -> SessionFile:
    return replace(file, problems=(*file.problems, *problems)) if problems else file


def _strayed(
    study: Study, digests: Mapping[str, str], experiment: Experiment, files: Iterable[SessionFile]
) -> dict[str, list[Problem]]:
    """What is wrong with the sessions of an experiment, by name of the file."""
    several: dict[int, list[tuple[Header, SessionFile]]] = defaultdict(list)
    for file in files:
        if file.header is not None and file.header.origin != "pilot":
            several[file.header.series].append((file.header, file))
    problems: dict[str, list[Problem]] = defaultdict(list)
    for sessions in several.values():
        headers = [header for header, _ in sessions]
        readers = _readers(study, digests, experiment, headers)
        drawn = {seed_base(one.predictions.values(), one.series) for one in headers if _is_drawn(one)}
        for header, file in sessions:
            plan = _of_plan(study, experiment, readers, header)
            versions = _of_versions(study, experiment, readers, header)
            where = _of_executor(experiment, readers, header)
            for what in (*plan, *versions, *where, *_of_seed(header, drawn)):
                message = f"{quoted(file.name)} {what}"
                problem = Problem(code="PR207", message=message, path=shown(file.path), advice=ADVICE)
                problems[file.path.name].append(problem)
    return problems


def _readers(
    study: Study, digests: Mapping[str, str], experiment: Experiment, headers: Sequence[Header]
) -> list[Prediction]:
    """Predictions for which all sessions of a series were taken, as they stand: those that it may decide."""
    bound = common_bindings(headers)
    return [
        one
        for one in study.predictions.values()
        if experiment.id in one.experiments and bound.get(one.id) == digests[one.id]
    ]


def _of_plan(
    study: Study, experiment: Experiment, readers: Iterable[Prediction], header: Header
) -> Iterator[str]:
    """What a header says otherwise than the registration of its readers has it, arms that they read alone.

    Others may have been added, and have had other numbers, since.
    """
    arms = sorted({arm for one in readers for arm in read_arms(study, one, experiment.id)})
    if not arms:
        return
    if header.pairing != experiment.pairing:
        yield f"has pairing {quoted(header.pairing)}, and {quoted(experiment.pairing)} was registered"
    if header.planned is None:
        # An arm without a number leaves all without: it may be gone. Who gives one for all leaves none.
        if experiment.table.repeats is not None:
            yield "has no planned number of repeats, though one was registered"
        return
    for arm in arms:
        planned, registered = header.planned.get(arm), experiment.arms[arm].repeats
        if planned != registered:
            of = "" if arm == ONLY_ARM else f" of {quoted(arm)}"
            yield f"plans {_count(planned)}{of}, and {_count(registered)} was registered"


def _of_versions(
    study: Study, experiment: Experiment, readers: Iterable[Prediction], header: Header
) -> Iterator[str]:
    """What a header says of the versions that arms are otherwise than the registration of its readers."""
    registered = refs_of(experiment)
    arms = {arm for one in readers for arm in read_arms(study, one, experiment.id)}
    for name in sorted({version_name(experiment.arms[arm]) for arm in arms}):
        wanted, found = registered.get(name), header.trees.get(name)
        if found is None and wanted is not None:
            yield f"does not say which version {quoted(name)} was, and {quoted(wanted)} was registered"
        elif found is not None and found.ref != wanted:
            what = "no version" if wanted is None else quoted(wanted)
            yield f"has {quoted(found.ref)} for {quoted(name)}, and {what} was registered"


def _of_executor(experiment: Experiment, readers: Sequence[Prediction], header: Header) -> Iterator[str]:
    """What a header says otherwise of where repeats ran than the registration of its readers has it.

    What names no executor may have been run on any that was asked for.
    """
    registered = experiment.table.executor
    if readers and registered != LOCAL and header.origin == "measured" and header.executor != registered:
        yield f"was run on {quoted(header.executor)}, and {quoted(registered)} was registered"


def _count(repeats: int | None) -> str:
    return "no number of repeats" if repeats is None else f"n = {repeats}"


def _is_drawn(header: Header) -> bool:
    """Whether order and seeds follow from what is registered: imports have none, nor has exploring."""
    return header.origin == "measured" and bool(header.predictions)


def _of_seed(header: Header, drawn: set[str]) -> Iterator[str]:
    """What is wrong with a seed that no session of its series gives.

    One that goes on with a series keeps its seed, also where something was withdrawn meanwhile.
    """
    if _is_drawn(header) and header.seed not in drawn:
        yield (
            "has another seed than what it was measured for gives: the order of its repeats, and their "
            "seeds, were chosen"
        )
