"""What no history can prove: said with every audit, so that nobody takes a clean one for more than it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.audit.findings import forgotten
from pytest_prereg.audit.findings.early import untold
from pytest_prereg.audit.history.order import Grade
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.provenance import instruments_in
from pytest_prereg.errors import PreregError
from pytest_prereg.evidence.file_origins import blob_of, origins_of
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.instruments import INSTRUMENTS
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.uses import instruments_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Header

ALWAYS = (
    "That the author did not know the answer: nothing shows what was seen elsewhere before the registration.",
    "That the numbers were measured at all: whoever can write a file can write evidence.",
    "That the wording was not shopped: other wordings of the same question leave no trace unless committed.",
    "That no run elsewhere, or never committed, was thrown away: another clone is not seen from here.",
    "That nothing was registered, measured and deleted before the first commit that is here.",
    "That nothing else has a say in what an experiment yields: what it finds undeclared is not digested.",
)
"""True of every study, whatever is in its history."""


def unproven(state: StudyState) -> list[str]:
    """Return a sentence for each thing that can't be proven of this study: what can never be comes first."""
    every = (_history, _elsewhere, _working_files, _sessions, _instruments, _words, _plugins)
    return [*ALWAYS, *(sentence for several in every for sentence in several(state))]


def _history(state: StudyState) -> Iterator[str]:
    past = state.past
    if not isinstance(past, Past):
        yield f"That anything was registered before its evidence: {past.detail}."
        return
    if cut := len(past.repository.shallow):
        yield (
            f"That nothing came before what is here: history is cut at {plural(cut, 'commit')} "
            "(git fetch --unshallow --tags)."
        )
    witnessed = [name for name, order in state.orders.items() if order.grade is Grade.WITNESSED]
    if witnessed:
        yield (
            f"That the tag of {listed(witnessed)} is as old as what it holds: when a tag was made knows only "
            "the host that it was pushed to."
        )


def _elsewhere(state: StudyState) -> Iterator[str]:
    """Yield what the history has of other studies and files, and the audit does not go into."""
    if studies := forgotten.untold(state):
        names = listed(one.id for one in studies)
        yield f"What {names} found: HEAD has no lock of it any more, and nothing of it is judged here."
    if isinstance(state.past, Past) and state.past.unread:
        yield (
            f"That no evidence was among {plural(state.past.unread, 'other file')} called *.jsonl: together "
            "they are too large to be looked into."
        )


def _working_files(state: StudyState) -> Iterator[str]:
    past = state.past
    if not isinstance(past, Past):
        return
    files = [file for file, _ in _read(state)]
    loose = sum(not past.introductions.get(state.blob(file)) for file in files)
    if loose:
        yield (
            f"That {plural(loose, 'session')} will stay as they are: what is not committed as it lies here "
            "can be replaced without a trace."
        )
    if _is_lock_loose(state):
        yield "That the lock will stay as it is: it is not committed as it lies here."
    if committed := len(files) - loose:
        yield (
            f"That none of {plural(committed, 'session')} was edited before its first commit: whoever edits "
            "one can write its last line anew."
        )


def _is_lock_loose(state: StudyState) -> bool:
    with suppress(PreregError):
        return state.lock != state.head_lock
    return True


def _sessions(state: StudyState) -> Iterator[str]:
    counted = [(file, header) for file, header in _read(state) if header.origin != "pilot"]
    every = sum(_repeats(file) for file, _ in counted)
    imported = sum(_repeats(file) for file, header in counted if header.origin == "imported")
    if imported:
        yield (
            f"Where {imported} of {plural(every, 'repeat')} come from: they were imported, and no session "
            "saw the machine that they ran on."
        )
    nameless = sum(
        header.origin == "imported" and not all(map(blob_of, origins_of(header) or [{}]))
        for _, header in counted
    )
    if nameless:
        yield (
            f"That no commit had the data of {plural(nameless, 'import')} before the registration: what git "
            "calls their file is not in the header."
        )
    measured = [header for _, header in counted if header.origin == "measured"]
    yield from _of_measured(state, measured)
    if unknown := untold(state):
        yield (
            f"That {plural(unknown, 'session')} came after the predictions of the same experiment: the "
            "commits that they name are not here."
        )


def _of_measured(state: StudyState, measured: list[Header]) -> Iterator[str]:
    of_all = f"of {plural(len(measured), 'measured session')}"
    here = state.past.here if isinstance(state.past, Past) else frozenset[str]()
    if unbound := sum(header.head not in here for header in measured):
        yield (
            f"What was registered when {unbound} {of_all} began: the commits that they name are not here, as "
            "after a squash or a rebase."
        )
    if dirty := sum(bool(header.dirty) for header in measured):
        yield (
            f"What else had been changed when {dirty} {of_all} began: the work tree was not as committed, "
            "and only code, subject and data of the experiment are digested."
        )
    unkept = sum(any(version.dirty for version in header.trees.values()) for header in measured)
    if unkept:
        yield (
            f"What exactly was run in {unkept} {of_all}: an arm was a work tree that no commit has, and git "
            "keeps its tree only where it was measured."
        )
    commands = {header.experiment for header in measured} & {
        name for name, one in state.study.experiments.items() if one.kind == "command"
    }
    if commands:
        yield (
            f"Which programs ran for {listed(sorted(commands))}: of a command its arguments are digested, "
            "and not what they start."
        )


def _read(state: StudyState) -> Iterator[tuple[SessionFile, Header]]:
    """Yield every session that has a header, of the study's experiments and of others."""
    for several in state.files.values():
        for file in several:
            if file.header is not None:
                yield file, file.header


def _repeats(file: SessionFile) -> int:
    return sum(one.outcome is not Outcome.WARMUP for one in file.attempts)


def _instruments(state: StudyState) -> Iterator[str]:
    for name, table in sorted(state.study.instruments.items()):
        if table.trusted is not None:
            yield (
                f"That instrument {quoted(name)} reads what it says: it is trusted, not calibrated, because "
                f"{quoted(table.trusted.rstrip('. '))}."
            )
    if names := sorted(_of_the_package(state)):
        yield (
            f"That nothing but {listed(names, 'or')} made its readings: a body shares its process with what "
            "reads it, and so does all code that its module imports."
        )


def _of_the_package(state: StudyState) -> set[str]:
    """Instruments of the package that predictions rest on; of its clocks the same holds, in every study."""
    found: set[str] = set()
    for one in state.study.predictions.values():
        found |= {*instruments_of(one, state.study.experiments)}
        for series in (state.bases[one.id] or {}).values():
            found |= instruments_in(state, one, series)
    return {name for name in found if name in INSTRUMENTS and INSTRUMENTS[name].unit != "s"}


def _words(state: StudyState) -> Iterator[str]:
    for word in ("pilot", "full"):
        names = [one.id for one in state.study.predictions.values() if one.table.data_seen == word]
        if names:
            yield f'How much was seen before {listed(names)}: data-seen = "{word}" is what the author says.'


def _plugins(state: StudyState) -> Iterator[str]:
    """Pytest loads the first of them whatever it judges; an audit loads none."""
    root = state.repository.root if state.repository else state.study.folder
    folder = state.study.folder.resolve()
    above = [one for one in (folder, *folder.parents) if one.is_relative_to(root)]
    found = [one / "conftest.py" for one in above if (one / "conftest.py").is_file()]
    if found:
        yield (
            "That what pytest printed is what an audit finds: conftest.py has a part in it, and none here "
            "(pytest --prereg --prereg-verify --noconftest judges without it)."
        )
