"""Where a prediction stands: its verdict, whether it was registered first, and what the lock says of it."""

from __future__ import annotations

import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.again import settle
from pytest_prereg.audit.assessing import assessment_of
from pytest_prereg.audit.deciding import Basis
from pytest_prereg.audit.dependencies import in_order, rests_on
from pytest_prereg.audit.exclusions import applied, misplaced, with_conditions
from pytest_prereg.audit.families import Family, family_of
from pytest_prereg.audit.headers import checked
from pytest_prereg.audit.history.chronicle import Chronicle, chronicle
from pytest_prereg.audit.history.committed import check_committed, committed_lock, uncommitted_code
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.order import EvidenceRef, Order, blob_id, grade_all
from pytest_prereg.audit.history.past import NoPast, Past
from pytest_prereg.audit.history.timeline import Timeline
from pytest_prereg.audit.namesakes import namesakes
from pytest_prereg.audit.origins import Origins, origins
from pytest_prereg.audit.standing import Assessment, Terms, read_arms
from pytest_prereg.audit.stopping import is_decided
from pytest_prereg.errors import PreregError, Problem, StudyError
from pytest_prereg.evidence.naming import SUFFIX, shown
from pytest_prereg.evidence.series import assemble, numbers, unfilled
from pytest_prereg.evidence.sessions import (
    SessionFile,
    check_links,
    read_session,
    read_study_evidence,
    session_paths,
)
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.lock import Lock, LockEntry, lock_of, refused_unit
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.sources import source_digest
from pytest_prereg.registry.subjects import data_digest, subject_digest
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.lock_file import Exclusion
    from pytest_prereg.registry.model import Experiment, Prediction, Study

    Digest = Callable[[Study, Experiment], str | None]


class StudyState:
    """One study with its lock, its evidence and its history; evidence is read again after measuring."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.repository = Repository.find(study.folder)
        if problems := namesakes(self.repository, study):
            raise StudyError(problems)
        self.lock = lock_of(study)
        self.digests = {name: registration_digest(study, one) for name, one in study.predictions.items()}
        self.constants = {name: table.value for name, table in study.constants.items()}
        self._order = in_order(study.predictions, self._below)
        self._files_digested: dict[tuple[Digest, str], str | None] = {}
        self._uncommitted: dict[str, list[Path]] = {}
        self._terms: dict[str, Terms] = {}
        self.anchor_roots: Path | None = None
        """Root certificates (PEM) that anchors have to lead to; those that the system trusts without it."""
        self.offered: frozenset[str] = frozenset()
        """Digests of files that are about to be imported: of what they hold the history is asked as well."""
        self.is_supposed = False
        """Whether its lock is not the one on disk: then what that records is not held against it."""
        self.reread()

    def reread(self) -> None:
        """Read all evidence of the study from disk."""
        self.files = checked(self.study, self.digests, read_study_evidence(self.study))
        self._blobs: dict[Path, str] = {}
        self.as_recorded = {
            name: self._assembled(experiment, self.files.get(name, []))
            for name, experiment in self.study.experiments.items()
        }
        self.broken = self._broken()
        self.measured_in = measured_in(self.files)
        self.bound_by_evidence = bound_by(self.files)
        for derived in ("amended", "chronicle", "family", "orders", "origins", "past", "timeline"):
            self.__dict__.pop(derived, None)
        self._apply()

    def with_lock(self, lock: Lock) -> StudyState:
        """Return the same study and evidence with what another lock excludes, voids, withdraws.

        Whether that says what was recorded before is not asked again.
        """
        other = copy.copy(self)
        other.lock = lock
        other.is_supposed = True
        if withdrawn_in(lock) != withdrawn_in(self.lock):
            other.__dict__.pop("family", None)
        other._apply()  # noqa: SLF001 - it is another of this class
        return other

    def as_registered(self, study: Study, lock: Lock) -> StudyState:
        """Return what all of the evidence gave by an earlier version of the study, and of its lock.

        Its history and its files are those of now: what code and subject have become is told of now.
        """
        other = copy.copy(self)
        other._become(study, lock)  # noqa: SLF001 - it is another of this class
        return other

    def _become(self, study: Study, lock: Lock) -> None:
        self.study, self.lock, self.is_supposed = study, lock, True
        self.digests = {name: registration_digest(study, one) for name, one in study.predictions.items()}
        self.constants = {name: table.value for name, table in study.constants.items()}
        self._order = in_order(study.predictions, self._below)
        self._terms, self._files_digested, self._uncommitted = {}, {}, {}
        for derived in ("amended", "family", "orders"):
            self.__dict__.pop(derived, None)
        self.files = {name: [] for name in study.experiments} | self.files
        self.as_recorded = {
            name: self._assembled(experiment, self.files[name])
            for name, experiment in study.experiments.items()
        }
        self._apply()

    def supposed(self, exclusions: tuple[Exclusion, ...]) -> StudyState:
        """Return what :meth:`with_lock` does with these exclusions in the lock; each set once.

        Raises:
            ValueError: There is no lock.
        """
        if self.lock is None:
            raise ValueError("self: the study has no lock")
        repeats = frozenset(one.repeat for one in exclusions)
        if repeats not in self._supposed:
            self._supposed[repeats] = self.with_lock(replace(self.lock, exclusions=exclusions))
        return self._supposed[repeats]

    @cached_property
    def as_measured(self) -> StudyState:
        """The same, as if nothing had been said against it: nothing excluded, voided or withdrawn."""
        lock = self.lock
        if lock is None or not (lock.exclusions or lock.voided or withdrawn_in(lock)):
            return self
        entries = {name: replace(entry, withdrawal=None) for name, entry in lock.predictions.items()}
        return self.with_lock(replace(lock, exclusions=(), voided=(), predictions=entries))

    def _apply(self) -> None:
        """Take what the lock says of the evidence into account; all that rests on that is found anew."""
        self.series = {
            name: [applied(one, self.lock) for one in several] for name, several in self.as_recorded.items()
        }
        self._assessed: dict[str, Assessment] = {}
        self._refused: dict[str, PreregError] = {}
        self._open: set[str] = set()
        self._supposed: dict[frozenset[str], StudyState] = {}
        for derived in ("bases", "earlier", "misplaced", "as_measured"):
            self.__dict__.pop(derived, None)

    def assembled(self, experiment: Experiment, files: Iterable[SessionFile]) -> list[Series]:
        """All series of an experiment; one that a stopping rule ends early is complete from there on.

        What the lock excludes is taken out of them, and reopens none.
        """
        return [applied(one, self.lock) for one in self._assembled(experiment, files)]

    def _assembled(self, experiment: Experiment, files: Iterable[SessionFile]) -> list[Series]:
        files = list(files)
        several = [with_conditions(experiment, one, files) for one in assemble(experiment, files)]
        return [one if one.complete else self._ended(experiment, one) for one in several]

    def _ended(self, experiment: Experiment, series: Series) -> Series:
        if series.planned is None:
            return replace(series, complete=self._has_its_arms(series))
        ended = experiment.stopping is not None and is_decided(self, experiment, series)
        return replace(series, complete=ended)

    def _has_its_arms(self, series: Series) -> bool:
        """Whether all is there that a series without a registered n was begun for: arms may come later."""
        known = self.study.predictions
        bound = [
            known[name] for name in series.predictions if name in known and self.binds(series, known[name])
        ]
        experiment = self.study.experiments[series.experiment]
        open_arms = unfilled(series.repeats, experiment.arms, numbers(experiment))
        return bool(bound) and all(
            open_arms.isdisjoint(read_arms(self.study, one, experiment.id)) for one in bound
        )

    def is_enough(self, experiment: Experiment, number: int) -> bool:
        """Whether a series that is being measured is at its end, from what its files say at this moment."""
        paths = session_paths(self.study.evidence_folder, {experiment.id})
        files = [read_session(path) for path in paths if path.parent.name == experiment.id]
        own = [file for file in files if file.header is None or file.header.study == self.study.id]
        return any(one.number == number and one.complete for one in self.assembled(experiment, own))

    @cached_property
    def bases(self) -> dict[str, Basis | None]:
        """The series that decide each prediction; ``None`` where there is not yet one of each experiment."""
        # Each is settled by what is entered of those that it rests on: they have to be found meanwhile.
        bases = self.__dict__["bases"] = dict[str, Basis | None]()
        for name in self._order:
            settle(self, self.study.predictions[name])
        return bases

    @cached_property
    def earlier(self) -> dict[str, Basis]:
        """The first series of what is decided by the next ones; filled with :attr:`bases`."""
        return {}

    @cached_property
    def family(self) -> Family | None:
        """The claims that share one error; ``None`` where each has its own."""
        return family_of(self)

    @cached_property
    def amended(self) -> frozenset[str]:
        """Ids whose registration was changed when there was evidence for it as it was."""
        entries = self.lock.predictions if self.lock else {}
        return frozenset(
            name
            for name, entry in entries.items()
            if self.bound_by_evidence.get(name, set())
            & {each.old for each in entry.amendments if each.key == "digest"} - {entry.digest}
        )

    @cached_property
    def misplaced(self) -> list[tuple[str, Problem]]:
        """Entries of the lock that name no evidence, or what may not be excluded, by the experiment named."""
        return misplaced(self)

    def undisturbed(self, basis: Basis) -> Basis:
        """Return a basis with its series as they were recorded, whatever was excluded or voided since."""
        recorded = {name: {one.number: one for one in self.as_recorded[name]} for name in basis}
        return {name: recorded[name][series.number] for name, series in basis.items()}

    @cached_property
    def head_lock(self) -> Lock | None:
        """The lock as HEAD has it; ``None`` without git or a commit, or where it has none."""
        return committed_lock(self.repository, self.study)

    @cached_property
    def orders(self) -> dict[str, Order]:
        """Whether each prediction was registered before the evidence that decides it."""
        evidence = {name: self.references(prediction) for name, prediction in self.study.predictions.items()}
        return grade_all(self.past, self.study, self.digests, evidence)

    @cached_property
    def past(self) -> Past | NoPast:
        """What the history says of the study and of all of its evidence that is here."""
        if apart := self.repository and self.repository.keeper(self.study.evidence_folder):
            detail = f"evidence is kept by another repository, {shown(apart)}, and no history here has it"
            return NoPast(detail=detail)
        known = [file for files in self.files.values() for file in files if file.header is not None]
        heads = {file.header.head for file in known if file.header and file.header.head is not None}
        evidence = {self.blob(file): file.path for file in known}
        return Past.read(
            self.repository,
            self.study.id,
            evidence,
            heads | self.origins.heads,
            others=self.origins.contents,
            broken=self._broken_sessions(),
            folder=self.repository.relative(self.study.evidence_folder) if self.repository else None,
        )

    @cached_property
    def origins(self) -> Origins:
        """Where what was imported, or is about to be, came from."""
        known = [file for files in self.files.values() for file in files]
        return origins(self.repository, self.study.id, known, self.offered)

    @cached_property
    def chronicle(self) -> Chronicle:
        """Every version of the lock that led to HEAD, and to what is on disk."""
        place = self.repository.relative(self.study.lock_path) if self.repository else None
        return chronicle(self.past, self.lock, place, self.digests)

    @cached_property
    def timeline(self) -> Timeline:
        """What evidence there was when the lock was changed."""
        return Timeline(self)

    def blob(self, file: SessionFile) -> str:
        """Name that git has, or would have, for a file of evidence as it is on disk."""
        if file.path not in self._blobs:
            algorithm = self.repository.algorithm if self.repository else "sha1"
            self._blobs[file.path] = blob_id(file.path.read_bytes(), algorithm)
        return self._blobs[file.path]

    def source(self, experiment: Experiment) -> str | None:
        """Source digest of an experiment, ``None`` for one that is fed by import.

        Raises:
            StudyError: its subject or its data are not there.
        """
        return self._once(source_digest, experiment)

    def subject(self, experiment: Experiment) -> str | None:
        """Digest of what an experiment measures, ``None`` where it declares nothing or is fed by import.

        Raises:
            StudyError: it is not there.
        """
        return self._once(subject_digest, experiment)

    def data(self, experiment: Experiment) -> str | None:
        """Digest of what an experiment reads, ``None`` where it declares nothing or is fed by import.

        Raises:
            StudyError: it is not there.
        """
        return self._once(data_digest, experiment)

    def _once(self, digest: Digest, experiment: Experiment) -> str | None:
        """Take a digest of an experiment's files once, if there are any that it runs."""
        key = digest, experiment.id
        if key not in self._files_digested:
            runs = experiment.kind != "import"
            self._files_digested[key] = digest(self.study, experiment) if runs else None
        return self._files_digested[key]

    def uncommitted_code(self, experiment: str) -> list[Path]:
        """Return the modules that an experiment runs and that HEAD lacks as they are; none without git.

        Raises:
            StudyError: its subject is not there.
        """
        if self.repository is None:
            return []
        if experiment not in self._uncommitted:
            table = self.study.experiments[experiment]
            self._uncommitted[experiment] = uncommitted_code(self.repository, self.study, table)
        return self._uncommitted[experiment]

    def is_withdrawn(self, name: str) -> bool:
        """Whether the working lock has a tombstone of a prediction."""
        entry = self.lock.predictions.get(name) if self.lock else None
        return entry is not None and entry.withdrawal is not None

    def removed(self) -> list[str]:
        """Return what the lock registers, nobody withdrew, and the study no longer has."""
        entries = self.lock.predictions if self.lock else {}
        return [
            name
            for name, entry in entries.items()
            if entry.withdrawal is None and name not in self.study.predictions
        ]

    def terms(self, prediction: Prediction) -> Terms:
        """Return unit and regions; what the lock says of the unit is only held against it.

        Raises:
            StudyError: the units of what is not registered don't go together.
        """
        if prediction.id not in self._terms:
            try:
                unit, scale = registered_unit(self.study, prediction)
                predicts, falsifier = thresholds(prediction, unit)
            except RefusedError as refusal:
                raise StudyError(refused_unit(self.study, prediction, refusal)) from None
            terms = Terms(unit=unit, scale=scale, predicts=predicts, falsifier=falsifier)
            self._terms[prediction.id] = terms
        return self._terms[prediction.id]

    def entry(self, prediction: Prediction) -> LockEntry | None:
        """The prediction's table in the working lock."""
        return self.lock.predictions.get(prediction.id) if self.lock else None

    def binds(self, series: Series, prediction: Prediction) -> bool:
        """Whether the series was measured for this very registration."""
        return series.predictions.get(prediction.id) == self.digests[prediction.id]

    def assess(self, prediction: Prediction) -> Assessment:
        """Judge a prediction from the evidence on disk, and before it all that it rests on; each once.

        Raises:
            JudgeError: a recorded value is not a number that can be judged.
        """
        for name in in_order([prediction.id], self._unassessed_below):
            self._assess(name)
        if prediction.id in self._refused:
            raise self._refused[prediction.id]
        return self._assessed[prediction.id]

    def _assess(self, name: str) -> None:
        if name in self._assessed or name in self._refused:
            return
        if name in self._open:
            message = f"{quoted(name)} rests on itself"
            raise StudyError(Problem(code="PR005", message=message, path=str(self.study.path)))
        self._open.add(name)
        try:
            self._assessed[name] = assessment_of(self, self.study.predictions[name])
        except PreregError as error:
            self._refused[name] = error
        finally:
            self._open.discard(name)

    def _below(self, name: str) -> Iterable[str]:
        return rests_on(self.study, self.study.predictions[name])

    def _unassessed_below(self, name: str) -> Iterable[str]:
        return () if name in self._assessed or name in self._refused else self._below(name)

    def before(self, prediction: Prediction, known: Container[str] = ()) -> list[str]:
        """Return ids of all predictions that have a say in a verdict, in the order in which they are decided.

        What is ``known`` is left out with all that it rests on. Those of its family come last: they have it
        together.
        """
        below = in_order([prediction.id], lambda name: [one for one in self._below(name) if one not in known])
        family = self.family.levels if self.family else ()
        together = [name for name in family if name in self.study.predictions]
        every = dict.fromkeys([*below, *together])
        return [name for name in every if name != prediction.id and name not in known]

    def altered(self, experiment: str, *several: Series) -> tuple[Problem, ...]:
        """What shows that evidence of some series was changed, or that evidence of the experiment is gone.

        A file that does not say what it belongs to may belong to any series.
        """
        sessions = {name for series in several for name in series.sessions}
        files = [file for file in self.files[experiment] if not file.header or file.path.name in sessions]
        return (*(problem for file in files for problem in file.problems), *self.gone(experiment))

    def spoiled(self, experiment: str) -> bool:
        """Whether anything of the experiment's series is altered or gone: then no more is bought."""
        return bool(self.altered(experiment, *self.series[experiment]))

    def gone(self, experiment: str) -> list[Problem]:
        """Return what shows that evidence of an experiment is gone, or not what git or a later file knows."""
        return [one for one in self.broken if one.path and Path(one.path).parent.name == experiment]

    def _broken_sessions(self) -> list[str]:
        """Return paths of evidence that is no more what git, or a later file, knows, as git has them."""
        files = (Path(one.path) for one in self.broken if one.path and one.path.endswith(SUFFIX))
        places = (self.repository.relative(path) for path in files) if self.repository else ()
        return [place for place in places if place is not None]

    def _broken(self) -> list[Problem]:
        """Return a problem for each file that git, or a later file, knows otherwise than it is now."""
        known = check_committed(self.repository, self.study.evidence_folder)
        paths = {problem.path for problem in known}
        linked = check_links([file for files in self.files.values() for file in files])
        return [*known, *(problem for problem in linked if problem.path not in paths)]

    def references(self, prediction: Prediction) -> list[EvidenceRef]:
        """Return the files of the series that decide a prediction, as git is asked about them."""
        basis = self.bases[prediction.id] or {}
        files = [
            file
            for name, series in basis.items()
            for file in self.files[name]
            if file.path.name in series.sessions
        ]
        references = (self.reference(file, prediction.id) for file in files)
        return [one for one in references if one is not None]

    def reference(self, file: SessionFile, prediction: str) -> EvidenceRef | None:
        """Return what git has to be asked about one session file; ``None`` where it has no header."""
        header = file.header
        if header is None:
            return None
        return EvidenceRef(
            path=file.path,
            blob=self.blob(file),
            head=header.head,
            origin=header.origin,
            bound=header.predictions.get(prediction),
        )


def withdrawn_in(lock: Lock | None) -> set[str]:
    """Return the ids of which a lock has a tombstone."""
    entries = lock.predictions.items() if lock else ()
    return {name for name, entry in entries if entry.withdrawal is not None}


def measured_in(files: Mapping[str, Iterable[SessionFile]]) -> dict[str, set[str]]:
    """Return by prediction the experiments whose evidence names it, under whatever name they had then."""
    found: dict[str, set[str]] = {}
    for experiment, several in files.items():
        for file in several:
            for prediction in file.header.predictions if file.header and file.attempts else ():
                found.setdefault(prediction, set()).add(experiment)
    return found


def bound_by(files: Mapping[str, Iterable[SessionFile]]) -> dict[str, set[str]]:
    """Return by prediction the registration digests that evidence was taken for."""
    found: dict[str, set[str]] = {}
    for several in files.values():
        for file in several:
            for prediction, digest in (
                file.header.predictions.items() if file.header and file.attempts else ()
            ):
                found.setdefault(prediction, set()).add(digest)
    return found
