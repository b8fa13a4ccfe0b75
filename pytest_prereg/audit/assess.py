"""Where a prediction stands: its verdict, whether it was registered first, and what the lock says of it."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.audit import remarks
from pytest_prereg.audit.committed import check_committed, committed_lock
from pytest_prereg.audit.git import Repository
from pytest_prereg.audit.order import EvidenceRef, Order, blob_id, grade_all
from pytest_prereg.audit.recorded import check_recorded
from pytest_prereg.audit.standing import Assessment, Replication, Terms, planned, standing
from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.evidence.series import assemble, evidence_digest, readings
from pytest_prereg.evidence.sessions import SessionFile, check_links, read_study_evidence
from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.verdicts import judge
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.lock import Lock, LockEntry, lock_of, refused_unit, wrong_unit
from pytest_prereg.registry.namesakes import check_namesakes
from pytest_prereg.registry.refusals import RefusedError, listed
from pytest_prereg.registry.sources import source_digest
from pytest_prereg.registry.subjects import data_digest, subject_digest
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_prereg.evidence.model import Header, Series
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.model import Experiment, Prediction, Study

    Digest = Callable[[Study, Experiment], str | None]

MIXED = "its sessions measured different versions of the subject, or read different data"


class StudyState:
    """One study with its lock, its evidence and its history; evidence is read again after measuring."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.repository = Repository.find(study.folder)
        if problems := check_namesakes(study):
            raise StudyError(problems)
        self.lock = lock_of(study)
        self.digests = {name: registration_digest(study, one) for name, one in study.predictions.items()}
        self.constants = {name: table.value for name, table in study.constants.items()}
        self._files_digested: dict[tuple[Digest, str], str | None] = {}
        self.reread()

    def reread(self) -> None:
        """Read all evidence of the study from disk."""
        self.files = read_study_evidence(self.study)
        self.series = {
            name: assemble(experiment, self.files.get(name, []))
            for name, experiment in self.study.experiments.items()
        }
        self.broken = self._broken()
        self.measured_in = measured_in(self.files)
        self.__dict__.pop("orders", None)

    @cached_property
    def head_lock(self) -> Lock | None:
        """The lock as HEAD has it; ``None`` without git or a commit, or where it has none."""
        return committed_lock(self.repository, self.study)

    @cached_property
    def orders(self) -> dict[str, Order]:
        """Whether each prediction was registered before the evidence that decides it."""
        evidence = {name: self._references(prediction) for name, prediction in self.study.predictions.items()}
        return grade_all(self.repository, self.study, self.digests, evidence)

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

    def has_committed_code(self, experiment: str) -> bool:
        """Return whether HEAD has the module that the experiment's function is in."""
        source = self.study.experiments[experiment].source
        if source is None or source.path is None or self.repository is None:
            return True
        return self.repository.file_at("HEAD", source.path) is not None

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
        try:
            unit, scale = registered_unit(self.study, prediction)
            predicts, falsifier = thresholds(prediction, unit)
        except RefusedError as refusal:
            raise StudyError(refused_unit(self.study, prediction, refusal)) from None
        return Terms(unit=unit, scale=scale, predicts=predicts, falsifier=falsifier)

    def entry(self, prediction: Prediction) -> LockEntry | None:
        """The prediction's table in the working lock."""
        return self.lock.predictions.get(prediction.id) if self.lock else None

    def deciding(self, prediction: Prediction) -> Series | None:
        """The first complete series that binds the prediction as it stands, else the first complete one."""
        complete = [series for series in self.series[prediction.experiment] if series.complete]
        bound = (item for item in complete if self.binds(item, prediction))
        return next(bound, complete[0] if complete else None)

    def binds(self, series: Series, prediction: Prediction) -> bool:
        """Whether the series was measured for this very registration."""
        return series.predictions.get(prediction.id) == self.digests[prediction.id]

    def assess(self, prediction: Prediction) -> Assessment:
        """Judge a prediction from the evidence on disk.

        Raises:
            JudgeError: a recorded value is not a number that can be judged.
        """
        series = self.deciding(prediction)
        terms = self.terms(prediction)
        altered = self.altered(prediction.experiment, series)
        judgement = self._judge(prediction, series, terms, altered) if series else None
        digest = evidence_digest([series], judgement.repeats) if series and judgement else None
        order = self.orders[prediction.id]
        entry = self.entry(prediction)
        return Assessment(
            prediction=prediction,
            predicts=terms.predicts,
            falsifier=terms.falsifier,
            unit=terms.unit,
            order=order,
            standing=standing(order, prediction),
            judgement=judgement,
            pending=None if judgement else self.why_pending(prediction),
            planned=planned(self.study.experiments[prediction.experiment], prediction),
            series=series.number if series else None,
            series_count=len(self.series[prediction.experiment]),
            sessions=series.sessions if series else (),
            evidence=digest,
            imported=series is not None and series.origin == "imported",
            entry=entry,
            flags=self._remarks(prediction, series, judgement, order),
            problems=(
                *altered,
                *self._miscalculated(prediction),
                *check_recorded(
                    self.study,
                    prediction,
                    entry,
                    is_registered=entry is not None and entry.digest == self.digests[prediction.id],
                    found=(series, judgement, digest) if series and judgement and digest else None,
                ),
            ),
            replications=tuple(self._replications(prediction, series, terms)),
        )

    def altered(self, experiment: str, series: Series | None) -> tuple[Problem, ...]:
        """What shows that evidence of the series was changed, or that evidence of the experiment is gone.

        A file that does not say what it belongs to may belong to any series.
        """
        sessions = series.sessions if series else ()
        files = [file for file in self.files[experiment] if not file.header or file.path.name in sessions]
        return (*(problem for file in files for problem in file.problems), *self._gone(experiment))

    def spoiled(self, experiment: str) -> bool:
        """Whether anything of the experiment's evidence is altered or gone: then no more is bought."""
        return bool(self._gone(experiment)) or any(file.problems for file in self.files[experiment])

    def _gone(self, experiment: str) -> list[Problem]:
        return [one for one in self.broken if one.path and Path(one.path).parent.name == experiment]

    def _broken(self) -> list[Problem]:
        """Return a problem for each file that git, or a later file, knows otherwise than it is now."""
        known = check_committed(self.repository, self.study.evidence_folder)
        paths = {problem.path for problem in known}
        linked = check_links([file for files in self.files.values() for file in files])
        return [*known, *(problem for problem in linked if problem.path not in paths)]

    def why_pending(self, prediction: Prediction) -> str:
        """One line for people: what is missing."""
        experiment = self.study.experiments[prediction.experiment]
        open_series = [series for series in self.series[experiment.id] if not series.complete]
        if open_series:
            planned = sum((open_series[-1].planned or {}).values())
            return (
                f"{len(open_series[-1].repeats)} of {planned} repeats recorded, none is shown before the last"
            )
        if experiment.kind == "import":
            return f"no evidence yet; pytest-prereg import FILE --experiment {experiment.id}"
        return "not measured yet"

    def _judge(
        self, prediction: Prediction, series: Series, terms: Terms, altered: Sequence[Problem]
    ) -> Judgement:
        """Judge a series; two branches that used its number must agree on the verdict."""
        integrity = altered[0].message if altered else MIXED if series.mixed_subject else None
        judgement = self._reading(prediction, series, terms, integrity)
        others = readings(
            self.study.experiments[prediction.experiment], self.files[prediction.experiment], series
        )
        verdicts = [self._reading(prediction, other, terms, integrity).verdict for other in others]
        if all(verdict is judgement.verdict for verdict in verdicts):
            return judgement
        dispute = (
            f"sessions {listed(sorted(series.sessions))} used one series number, and give other verdicts"
        )
        return self._reading(prediction, series, terms, dispute)

    def _reading(
        self, prediction: Prediction, series: Series, terms: Terms, integrity: str | None
    ) -> Judgement:
        return judge(
            prediction,
            self.study.experiments[prediction.experiment],
            series,
            predicts=terms.predicts,
            falsifier=terms.falsifier,
            scale=terms.scale,
            constants=self.constants,
            obstacles=((Reason.INTEGRITY, integrity),) if integrity else (),
        )

    def _miscalculated(self, prediction: Prediction) -> tuple[Problem, ...]:
        """Return what is wrong with the unit in the lock of what is registered as it stands."""
        entry = self.entry(prediction)
        if entry is None or entry.digest != self.digests[prediction.id]:
            return ()
        problem = wrong_unit(self.study, prediction, entry)
        return () if problem is None else (problem,)

    def _replications(
        self, prediction: Prediction, deciding: Series | None, terms: Terms
    ) -> list[Replication]:
        later = [
            series
            for series in self.series[prediction.experiment]
            if deciding and series.complete and series.number > deciding.number
        ]
        return [
            Replication(
                series=series.number,
                judgement=self._judge(prediction, series, terms, self.altered(series.experiment, series)),
            )
            for series in later
        ]

    def _remarks(
        self, prediction: Prediction, series: Series | None, judgement: Judgement | None, order: Order
    ) -> tuple[str, ...]:
        every = self.series[prediction.experiment]
        now = [self._now(digest, prediction) for digest in (self.source, self.subject) if series]
        of_series = remarks.of_series(prediction, series, every, *now) if series else []
        experiments = self.measured_in.get(prediction.id, set())
        of_registration = remarks.of_registration(prediction, self.entry(prediction), experiments)
        of_judgement = judgement.flags if judgement else ()
        return tuple(dict.fromkeys((*of_judgement, *of_series, *order.flags, *of_registration)))

    def _now(self, digest: Callable[[Experiment], str | None], prediction: Prediction) -> str | None:
        """A digest, or ``None``: a verdict stands, though the files that it is about are no longer here."""
        with suppress(StudyError):
            return digest(self.study.experiments[prediction.experiment])
        return None

    def _references(self, prediction: Prediction) -> list[EvidenceRef]:
        series = self.deciding(prediction)
        if series is None:
            return []
        files = [file for file in self.files[series.experiment] if file.path.name in series.sessions]
        return [reference(file, file.header, prediction) for file in files if file.header]


def reference(file: SessionFile, header: Header, prediction: Prediction) -> EvidenceRef:
    """What git has to be asked about one session file."""
    return EvidenceRef(
        path=file.path,
        blob=blob_id(file.path.read_bytes()),
        head=header.head,
        origin=header.origin,
        bound=header.predictions.get(prediction.id),
    )


def measured_in(files: Mapping[str, Iterable[SessionFile]]) -> dict[str, set[str]]:
    """Return by prediction the experiments whose evidence names it, under whatever name they had then."""
    found: dict[str, set[str]] = {}
    for experiment, several in files.items():
        for file in several:
            for prediction in file.header.predictions if file.header and file.attempts else ():
                found.setdefault(prediction, set()).add(experiment)
    return found
