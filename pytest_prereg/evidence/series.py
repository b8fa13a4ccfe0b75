"""From session files to series: which attempt settled which slot, what is open, and which series decides."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from pytest_prereg.evidence.environment import machine_class
from pytest_prereg.evidence.model import RERUN, Outcome, RecordedRepeat, Series
from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.rules import follows_from_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.files import Attempt, SessionFile
    from pytest_prereg.evidence.model import Header
    from pytest_prereg.registry.model import Experiment

Slot = tuple[str, int]
"""Arm and index: what a planned repeat fills."""
Flight = tuple[str, int, str]
"""Repeat, attempt, and mark or call: what one session began and another one may take up."""

_OK, _EXCLUDED = Outcome.OK, Outcome.EXCLUDED
_UNJUDGED = frozenset({Outcome.PILOT, Outcome.WARMUP})


def assemble(experiment: Experiment, files: Iterable[SessionFile]) -> list[Series]:
    """Return all series that the session ``files`` of ``experiment`` add up to, by number.

    A slot is settled by its first attempt that is not run again. One that failed by infrastructure more than
    max(2, n/4) times is settled as that; a lost attempt never settles. What more than the planned repeats was
    recorded is left out, and so are faults at a slot that was settled before: nobody needed to run it again.
    Pilots and warm-ups belong to no series.
    """
    numbered: dict[int, list[tuple[Header, SessionFile]]] = {}
    for file in sorted(files, key=lambda file: file.path.name):
        if file.header is not None and file.header.origin != "pilot":
            numbered.setdefault(file.header.series, []).append((file.header, file))
    return [_assemble_one(experiment, numbered[number]) for number in sorted(numbered)]


def _assemble_one(experiment: Experiment, sessions: list[tuple[Header, SessionFile]]) -> Series:
    headers = [header for header, _ in sessions]
    first = next((header for header in headers if header.origin == "measured"), headers[0])
    measured = [header for header in headers if header.origin == "measured"]
    rules = experiment.table.exclude or ()
    taken_up = (_flight(one) for _, file in sessions for one in file.attempts if one.attached)
    settling = Settling(first.planned, rules=rules, numbers=numbers(experiment), taken_up=taken_up)
    disputed = [file.path.name for header, file in sessions if settling.add(file.attempts, _machine(header))]
    return Series(
        experiment=experiment.id,
        number=first.series,
        origin="imported" if any(header.origin == "imported" for header in headers) else "measured",
        pairing=first.pairing,
        planned=first.planned,
        repeats=tuple(settling.settled.values()),
        faults=tuple(settling.faults),
        surplus=settling.surplus,
        disputed=tuple(disputed),
        complete=settling.complete(experiment.arms),
        source=first.source,
        seed=first.seed,
        predictions=common_bindings(headers),
        sessions=tuple(file.path.name for _, file in sessions),
        subject=first.subject,
        data=first.data,
        mixed_subject=any(_measured(each) != _measured(first) for each in measured),
        mixed_versions=any(_software(each) != _software(first) for each in measured),
        trees=first.trees,
    )


def _measured(header: Header) -> tuple[str | None, str | None, dict[str, str]]:
    """Return what a session measured, and read: of versions of the code what was checked out counts."""
    trees = {arm: version.tree for arm, version in header.trees.items()}
    return header.subject, header.data, trees


def _software(header: Header) -> tuple[dict[str, str], object]:
    """Return what a session ran with: versions, and the image of a service, which has more in it."""
    return header.versions, header.environment.get("image_id")


def _machine(header: Header) -> str | None:
    """Return where the session measured, for attempts that don't say so themselves."""
    is_here = header.origin == "measured" and not header.elsewhere
    return machine_class(header.environment) if is_here and header.environment else None


def common_bindings(headers: Sequence[Header]) -> dict[str, str]:
    """Return the registration digests that all sessions of a series bind, by prediction id."""
    first, *others = (header.predictions for header in headers)
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}


class Settling:
    """The slots of one series while its attempts are gone through in order.

    ``rules`` are those that were registered: what anything else excluded, its author did. Where not all arms
    have a planned number, ``numbers`` are those of the ones that have one. What one session began and
    another one took up (``taken_up``) was not lost by the first.
    """

    def __init__(
        self,
        planned: Mapping[str, int] | None,
        *,
        rules: Iterable[str] = (),
        numbers: Mapping[str, int] | None = None,
        taken_up: Iterable[Flight | None] = (),
    ) -> None:
        self.planned = planned
        self.rules = tuple(rules)
        self.numbers = numbers or {}
        self.taken_up = Counter(taken_up)
        self.settled: dict[Slot, RecordedRepeat] = {}
        self.faults: list[str] = []
        self.surplus = 0
        self._failures: Counter[Slot] = Counter()

    def add(self, attempts: Iterable[Attempt], machine: str | None) -> bool:
        """Go through the attempts of one file; ``machine`` is for those that name none.

        Returns whether any of them gives a settled slot another result.
        """
        disputed = False
        for attempt in attempts:
            outcome = attempt.outcome
            is_plain = outcome is _OK  # nearly all are: a set of outcomes is slow to ask
            if attempt.attached:
                self.taken_up[_flight(attempt)] -= 1
            if not is_plain and outcome in _UNJUDGED:
                continue
            if not self._is_planned(attempt):
                self.surplus += 1
                continue
            slot = (attempt.arm, attempt.index)
            if slot in self.settled:
                disputed |= outcome not in RERUN and not _agree(attempt, self.settled[slot])
                continue
            if outcome is Outcome.LOST and self._is_taken_up(attempt):
                continue
            if not is_plain and outcome in RERUN:
                self.faults.append(attempt.repeat)
            if is_plain or self._settles(slot, outcome):
                by_author = outcome is _EXCLUDED and not follows_from_rules(self.rules, attempt.cause)
                self.settled[slot] = _recorded(attempt, len(self.settled), machine, by_author=by_author)
        return disputed

    def _is_taken_up(self, attempt: Attempt) -> bool:
        flight = _flight(attempt)
        return flight is not None and self.taken_up[flight] > 0

    def complete(self, arms: Collection[str]) -> bool:
        """Return whether every planned slot is settled; without a plan, whether each arm is full."""
        if self.planned is None:
            return not unfilled(self.settled.values(), arms, self.numbers)
        return len(self.settled) == sum(self.planned.values())

    def _is_planned(self, attempt: Attempt) -> bool:
        if self.planned is None:
            return attempt.index <= self.numbers.get(attempt.arm, attempt.index)
        return 1 <= attempt.index <= self.planned.get(attempt.arm, 0)

    def _settles(self, slot: Slot, outcome: Outcome) -> bool:
        if outcome is Outcome.INFRASTRUCTURE:
            self._failures[slot] += 1
            planned = (self.planned or self.numbers).get(slot[0], 0)
            return self._failures[slot] > max(2, planned / 4)
        return outcome is not Outcome.LOST


def numbers(experiment: Experiment) -> dict[str, int]:
    """Return how many repeats each arm is to have, of those that have a number of their own."""
    if experiment.table.repeats is not None:
        return {}
    return {name: arm.repeats for name, arm in experiment.arms.items() if arm.repeats is not None}


def unfilled(repeats: Iterable[RecordedRepeat], arms: Iterable[str], numbers: Mapping[str, int]) -> set[str]:
    """Return the ``arms`` with fewer repeats than ``numbers`` says; if it says nothing, those with none."""
    counts = Counter(one.arm for one in repeats)
    return {arm for arm in arms if counts[arm] < numbers.get(arm, 1)}


def _agree(attempt: Attempt, settled: RecordedRepeat) -> bool:
    return (attempt.outcome, attempt.values) == (settled.outcome, settled.values)


def _recorded(attempt: Attempt, position: int, machine: str | None, *, by_author: bool) -> RecordedRepeat:
    return RecordedRepeat(
        id=attempt.repeat,
        arm=attempt.arm,
        index=attempt.index,
        block=attempt.block,
        outcome=attempt.outcome,
        values=attempt.values,
        position=position,
        machine=attempt.machine or machine,
        cause=attempt.cause,
        instruments=attempt.instruments,
        by_author=by_author,
        outside=attempt.outside,
        resumed=attempt.resumed,
        unreadable=attempt.unreadable,
    )


def readings(experiment: Experiment, files: Iterable[SessionFile], series: Series) -> list[Series]:
    """Return ``series`` in other readings: each session that disputes it goes first in one of them."""
    sessions = [(file.header, file) for file in files if file.header and file.path.name in series.sessions]
    return [
        _assemble_one(experiment, sorted(sessions, key=lambda session: session[1].path.name != name))
        for name in series.disputed
    ]


def is_current(
    series: Series,
    source: str | None,
    predictions: Mapping[str, str],
    versions: tuple[str | None, str | None] | None = None,
) -> bool:
    """Return whether ``series`` can be continued with this ``source`` digest and these registration digests.

    An incomplete series that can't is abandoned, or its author voided it. A prediction that only one side
    knows abandons nothing: it was registered later, or withdrawn.

    Args:
        series: What earlier sessions have.
        source: Digest of the experiment's code; ``None`` where none will be run.
        predictions: Registration digests by prediction.
        versions: Digests of the experiment's subject and data; ``None`` where neither will be used.
    """
    if series.voided is not None:
        return False
    if versions is not None and (series.subject, series.data) != versions:
        return False
    if series.source is not None and source is not None and series.source != source:
        return False
    return all(predictions.get(name, bound) == bound for name, bound in series.predictions.items())


def was_left(series: Series, every: Iterable[Series]) -> bool:
    """Return whether an incomplete series was left for one of ``every`` that began later for the same claims.

    It is never gone on with, also where code and subject are again what they were: its author has seen what
    the later one gave, and would choose which of them is complete first.
    """
    return any(one.number > series.number and _is_instead(one, series) for one in every)


def _is_instead(one: Series, series: Series) -> bool:
    """Whether a series was begun in place of another.

    Rows of an arm that is full there open a series beside it, which the other arms' rows still go to.
    """
    common = series.predictions.keys() & one.predictions.keys()
    are_imported = one.origin == series.origin == "imported"
    is_beside = are_imported and all(one.predictions[name] == series.predictions[name] for name in common)
    return bool(common) and not is_beside


def open_series(
    all_series: Iterable[Series], source: str | None, predictions: Mapping[str, str]
) -> Series | None:
    """Return the first incomplete series that can be continued, or ``None``."""
    every = list(all_series)
    opened = (one for one in every if not one.complete and not was_left(one, every))
    return next((one for one in opened if is_current(one, source, predictions)), None)


def next_number(all_series: Iterable[Series]) -> int:
    """Return the number that a new series gets."""
    return max((series.number for series in all_series), default=0) + 1


def open_slots(series: Series | None, experiment: Experiment) -> list[Slot]:
    """Return the planned slots that are not settled, arm by arm; none where the number was not registered."""
    planned = series.planned if series else experiment.planned
    settled = {(repeat.arm, repeat.index) for repeat in series.repeats} if series else set()
    slots = ((arm, index) for arm, count in (planned or {}).items() for index in range(1, count + 1))
    return [slot for slot in slots if slot not in settled]


def attempts(files: Iterable[SessionFile], repeat: str) -> int:
    """Return how many times the repeat with this id was started, in all ``files``; of a warm-up, none."""
    return attempts_by_repeat(files)[repeat]


def attempts_by_repeat(files: Iterable[SessionFile]) -> Counter[str]:
    """Return how many times each repeat was started, by id; what was never started counts 0.

    Warm-ups are not among them.
    """
    every = (attempt for file in files for attempt in file.attempts if not attempt.attached)
    return Counter(attempt.repeat for attempt in every if attempt.outcome is not Outcome.WARMUP)


def running(files: Iterable[SessionFile]) -> list[Attempt]:
    """Return the attempts that a service may still run, or have run, and whose end no session has seen.

    Each once, as the last session that had it; those that nothing finds are lost.
    """
    every = [attempt for file in files for attempt in file.attempts if _flight(attempt) is not None]
    ended = {_flight(attempt) for attempt in every if attempt.outcome is not Outcome.LOST}
    return list({_flight(one): one for one in every if _flight(one) not in ended}.values())


def unfindable(
    files: Iterable[SessionFile],
    number: int,
    settled: Collection[Slot],
    remembers: Callable[[str], bool] = lambda _mark: False,
) -> dict[str, list[Attempt]]:
    """Return the attempts of a series that a service may run still, and that nothing finds, by app.

    Their session was killed after it had written that each begins, and before under which call; and the
    service does not remember (``remembers``) what was begun under their marks. What is ``settled`` is left
    out, and what a session left that ended by itself: it ended all. An app that no header names is "".
    """
    found: dict[str, list[Attempt]] = {}
    for file in files:
        header = file.header
        if header is None or header.series != number or header.origin != "measured":
            continue
        if not header.elsewhere or file.footer is not None:
            continue
        app = str(header.environment.get("app_id") or "")
        for one in file.attempts:
            is_open = one.outcome is Outcome.LOST and (one.arm, one.index) not in settled
            if is_open and one.call is None and not (one.mark and remembers(one.mark)):
                found.setdefault(app, []).append(one)
    return found


def handed_on(files: Iterable[SessionFile]) -> dict[str, list[Attempt]]:
    """Return the attempts without an end that a later session took up, by name of their session's file.

    Nothing of them is lost, and nothing unknown: how they ended is told there.
    """
    every = sorted((file for file in files if file.header), key=lambda file: file.path.name)
    left = Counter(_flight(one) for file in every for one in file.attempts if one.attached)
    found: dict[str, list[Attempt]] = {}
    for file in every if left else ():
        for attempt in file.attempts:
            if attempt.attached:
                left[_flight(attempt)] -= 1
            flight = _flight(attempt) if attempt.outcome is Outcome.LOST else None
            if flight is not None and left[flight] > 0:
                found.setdefault(file.path.name, []).append(attempt)
    return found


def _flight(attempt: Attempt) -> Flight | None:
    """Return what finds an attempt in other sessions: only the same attempt at the same repeat is it."""
    known = attempt.mark or attempt.call
    return None if known is None else (attempt.repeat, attempt.number, known)


def deciding_series(all_series: Iterable[Series]) -> Series | None:
    """Return the first complete series: it decides, later ones are replications."""
    return next((series for series in all_series if series.complete), None)


def evidence_digest(several: Iterable[Series], repeats: Collection[str]) -> str:
    """Return ``sha256:…`` over id, outcome and values of the ``repeats`` (by id), in run order.

    Of ``several`` series those of the first come first; ids tell them apart.
    """
    wanted = frozenset(repeats)
    used = [line for series in several for line in _used(series, wanted)]
    return f"sha256:{hashlib.sha256(canonical_json(used)).hexdigest()}"


def _used(series: Series, wanted: frozenset[str]) -> Iterator[list[object]]:
    for repeat in series.repeats:
        if repeat.id in wanted:
            yield [repeat.id, repeat.outcome.value, repeat.values]
