"""Where a prediction stands: its verdict, whether it was registered first, and what the lock says of it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from pytest_prereg.audit.committed import check_committed, committed_lock
from pytest_prereg.audit.git import Repository
from pytest_prereg.audit.order import EvidenceRef, Grade, Order, blob_id, grade_all
from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.series import assemble, evidence_digest, readings
from pytest_prereg.evidence.sessions import SessionFile, check_links, read_study_evidence
from pytest_prereg.judge.faults import arm_of
from pytest_prereg.judge.model import Judgement
from pytest_prereg.judge.verdicts import judge
from pytest_prereg.registry.digest import USUAL_CONFIDENCE, claim_digest, registration_digest
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.lock import Lock, LockEntry, lock_of, refused_unit, wrong_unit
from pytest_prereg.registry.model import Experiment, Prediction, Study
from pytest_prereg.registry.namesakes import check_namesakes
from pytest_prereg.registry.refusals import RefusedError, listed
from pytest_prereg.registry.regions import Region
from pytest_prereg.registry.sources import source_digest
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.evidence.model import Header, Series

CONFIRMATORY = frozenset({Grade.REGISTERED, Grade.REGISTERED_ONE_SIDE, Grade.WITNESSED})

Standing = Literal["confirmatory", "replication", "exploratory"]


class Replication(msgspec.Struct, kw_only=True, frozen=True):
    """A later series of a claim that is decided: listed beside it, never the verdict."""

    series: int
    judgement: Judgement


class Assessment(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction, judged or pending, with its standing and the record that the lock holds."""

    prediction: Prediction
    predicts: Region
    """In ``unit``."""
    falsifier: Region
    unit: str
    order: Order
    standing: Standing
    """Of the evidence, or while pending of the registration alone."""
    judgement: Judgement | None
    pending: str | None
    """Why there is no verdict yet, and what would change that."""
    planned: int | None
    """Registered repeats, the smaller arm's."""
    series: int | None
    series_count: int
    sessions: tuple[str, ...]
    """Names of the evidence files of the deciding series."""
    evidence: str | None
    """Digest of the repeats used, as the lock records it."""
    imported: bool
    entry: LockEntry | None
    flags: tuple[str, ...]
    problems: tuple[Problem, ...]
    """Evidence altered or gone (PR207), or a recorded verdict that does not follow (PR211)."""
    replications: tuple[Replication, ...]

    @property
    def recorded(self) -> str | None:
        """The verdict in the lock."""
        return self.entry.verdict if self.entry else None

    @property
    def changed(self) -> bool:
        """Whether a recorded verdict is no longer what the evidence gives."""
        return bool(self.judgement and self.recorded and self.recorded != self.judgement.verdict)


class Terms(msgspec.Struct, kw_only=True, frozen=True):
    """What a prediction is judged by, in the unit that its verdict is shown in."""

    unit: str
    scale: float
    """From the quantity's own unit to ``unit``."""
    predicts: Region
    falsifier: Region


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
        self._sources: dict[str, str | None] = {}
        self.reread()

    def reread(self) -> None:
        """Read all evidence of the study from disk."""
        self.files = read_study_evidence(self.study)
        self.series = {
            name: assemble(experiment, self.files.get(name, []))
            for name, experiment in self.study.experiments.items()
        }
        self.broken = self._broken()
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
        """Source digest of an experiment, ``None`` for one that is fed by import."""
        if experiment.id not in self._sources:
            self._sources[experiment.id] = (
                source_digest(self.study, experiment) if experiment.kind != "import" else None
            )
        return self._sources[experiment.id]

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
        digest = evidence_digest(series, judgement.repeats) if series and judgement else None
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
            flags=self._flags(prediction, series, judgement, order),
            problems=(
                *altered,
                *self._miscalculated(prediction),
                *self._unfounded(prediction, judgement, digest, series),
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
        integrity = altered[0].message if altered else None
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
            integrity=integrity,
        )

    def _miscalculated(self, prediction: Prediction) -> tuple[Problem, ...]:
        """Return what is wrong with the unit in the lock of what is registered as it stands."""
        entry = self.entry(prediction)
        if entry is None or entry.digest != self.digests[prediction.id]:
            return ()
        problem = wrong_unit(self.study, prediction, entry)
        return () if problem is None else (problem,)

    def _unfounded(
        self, prediction: Prediction, judgement: Judgement | None, digest: str | None, series: Series | None
    ) -> tuple[Problem, ...]:
        """Return what is wrong with the recorded verdict: its evidence is gone, or it does not follow.

        Where the prediction itself is no longer the registered one, a verdict that differs is a change, not
        a lie.
        """
        entry = self.entry(prediction)
        if entry is None or entry.verdict is None:
            return ()
        if judgement is None or series is None or (entry.series, entry.evidence) != (series.number, digest):
            return (gone(prediction, entry, self.study),)
        if self.digests[prediction.id] != entry.digest or follows(entry, judgement):
            return ()
        return (unfounded(prediction, entry, judgement, self.study),)

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

    def _references(self, prediction: Prediction) -> list[EvidenceRef]:
        series = self.deciding(prediction)
        if series is None:
            return []
        files = [file for file in self.files[series.experiment] if file.path.name in series.sessions]
        return [reference(file, file.header, prediction) for file in files if file.header]

    def _flags(
        self, prediction: Prediction, series: Series | None, judgement: Judgement | None, order: Order
    ) -> tuple[str, ...]:
        of_evidence = self._of_evidence(prediction, series) if series else []
        of_entry = self._of_entry(prediction)
        low = ["low confidence"] if prediction.confidence < USUAL_CONFIDENCE else []
        return (*(judgement.flags if judgement else ()), *of_evidence, *order.flags, *of_entry, *low)

    def _of_evidence(self, prediction: Prediction, series: Series) -> list[str]:
        """Name what is not plain about the evidence of the deciding series."""
        again = any(arm_of(fault) in prediction.arms for fault in series.faults)
        flags = {
            "imported": series.origin == "imported",
            "disputed": bool(series.disputed),
            "repeats run again": again,
            "surplus repeats": series.surplus > 0,
        }
        return [*(flag for flag, holds in flags.items() if holds), *self._earlier(prediction, series)]

    def _of_entry(self, prediction: Prediction) -> list[str]:
        """Name what happened to the registration that does not change its standing."""
        entry = self.entry(prediction)
        if entry is None:
            return []
        after_data = any(each.key == "digest" and each.verdict for each in entry.amendments)
        amended = ["amended after data"] if after_data else []
        return [*amended, *(["reworded"] if entry.claim != claim_digest(prediction.claim) else [])]

    def _earlier(self, prediction: Prediction, deciding: Series) -> list[str]:
        """Name what was there to be read of the experiment before the deciding series began."""
        seen = self._seen_elsewhere(prediction)
        earlier = [one for one in self.series[deciding.experiment] if one.number < deciding.number]
        abandoned = ["abandoned series"] if any(not one.complete for one in earlier) else []
        return [*abandoned, *(["earlier data"] if seen or any(one.complete for one in earlier) else [])]

    def _seen_elsewhere(self, prediction: Prediction) -> bool:
        """Whether the prediction was measured as one of another experiment, or one that had another name."""
        others = (files for name, files in self.files.items() if name != prediction.experiment)
        headers = (file.header for files in others for file in files if file.attempts)
        return any(header and prediction.id in header.predictions for header in headers)


def reference(file: SessionFile, header: Header, prediction: Prediction) -> EvidenceRef:
    """What git has to be asked about one session file."""
    return EvidenceRef(
        path=file.path,
        blob=blob_id(file.path.read_bytes()),
        head=header.head,
        origin=header.origin,
        bound=header.predictions.get(prediction.id),
    )


def standing(order: Order, prediction: Prediction) -> Standing:
    """Confirmatory only where the registration precedes the evidence and the data were not seen.

    An interval below the usual level is for exploring, however early it was registered.
    """
    if order.grade not in CONFIRMATORY or prediction.confidence < USUAL_CONFIDENCE:
        return "exploratory"
    return "replication" if prediction.table.data_seen == "full" else "confirmatory"


def gone(prediction: Prediction, entry: LockEntry, study: Study) -> Problem:
    """Return PR207: the repeats that the recorded verdict rests on are not there."""
    return Problem(
        code="PR207",
        message=f'the evidence of the recorded verdict of "{prediction.id}" '
        f"(series {entry.series}, {short(entry.evidence)}) is gone or altered",
        path=shown(study.lock_path),
        advice=f"Bring it back: git checkout HEAD -- {shown(study.evidence_folder)}",
    )


def unfounded(prediction: Prediction, entry: LockEntry, judgement: Judgement, study: Study) -> Problem:
    """Return PR211: the evidence is there, and gives something else."""
    return Problem(
        code="PR211",
        message=f'the recorded verdict of "{prediction.id}", "{entry.verdict}", does not follow from the '
        f"evidence, which gives {judgement.verdict}",
        path=shown(study.lock_path),
        advice="Restore the lock, or record again: pytest --prereg-verify --prereg-record",
    )


def follows(entry: LockEntry, judgement: Judgement) -> bool:
    """Whether the record in the lock is, to the last stored digit, what the evidence gives."""
    reason = judgement.reason.value if judgement.reason else None
    return (entry.verdict, entry.reason, entry.estimate, entry.interval, entry.n) == (
        judgement.verdict.value,
        reason,
        judgement.estimate,
        judgement.interval,
        judgement.n,
    )


def short(digest: str | None) -> str:
    """The first eight digits of a digest, for people."""
    return (digest or "none").removeprefix("sha256:")[:8]


def planned(experiment: Experiment, prediction: Prediction) -> int | None:
    """Registered repeats of the prediction's smaller arm; ``None`` where no number was registered."""
    counts = [experiment.arms[arm].repeats for arm in prediction.arms]
    known = [count for count in counts if count is not None]
    return min(known) if len(known) == len(counts) else None
