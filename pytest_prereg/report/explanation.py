"""A verdict in words: why it is what it is, what would have decided, and what would now be p-hacking."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_prereg.audit.again import AGAIN
from pytest_prereg.audit.assessing import BY_HAND, CONTRADICTED, FOREKNOWN, RESTS_ON_AMENDED
from pytest_prereg.audit.remarks import WAS_REFUTED
from pytest_prereg.audit.standing import CONFIRMATORY
from pytest_prereg.errors import one_line
from pytest_prereg.evidence.cost import dollars
from pytest_prereg.evidence.import_commands import next_import
from pytest_prereg.judge.chances import plan_of
from pytest_prereg.judge.hindsight import ENOUGH, hindsight
from pytest_prereg.judge.instruments import UNSTATED
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.numbers import number_text
from pytest_prereg.registry.commands import BUILT_IN
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.regions import edges
from pytest_prereg.registry.units import registered_unit
from pytest_prereg.registry.uses import metrics_of
from pytest_prereg.report.columns import broken, padded
from pytest_prereg.report.commands import decision_rule, estimand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.audit.series_states import SeriesState
    from pytest_prereg.audit.standing import Assessment, Beside
    from pytest_prereg.evidence.cost import Account
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.judge.model import Alternative, Judgement
    from pytest_prereg.registry.model import Metric, Prediction, Study

    Files = Mapping[str, Sequence[SessionFile]]

_LABEL = 11
_NO_SERIES: Mapping[str, Sequence[SeriesState]] = {}
_NO_FILES: Mapping[str, Sequence[SessionFile]] = {}

REASONS: Mapping[Reason, str] = {
    Reason.INTEGRITY: "evidence was changed, contradicts itself, or was declared broken by its author, so "
    "nothing can be concluded from it; what was changed can be brought back",
    Reason.REQUIRED: "it rests on another prediction that is not supported",
    Reason.INSTRUMENT: "what took the readings was not shown to read right, on this kind of machine and "
    "before them, or it read what cannot be, or could be read in no repeat",
    Reason.SCOPE: "what is compared did not run on one kind of machine: the machine may be the difference",
    Reason.INFRASTRUCTURE: "more attempts were lost to the machinery than can be ignored: what was lost may "
    "differ from what was kept",
    Reason.TASK_FAILED: "repeats failed; leaving them out would report the survivors alone",
    Reason.EXCLUDED: "the verdict hangs on repeats that were set aside, by somebody or for want of a "
    "reading, or rules took out more of them than was registered",
    Reason.N_TOO_SMALL: "so few repeats cannot decide it, whatever they show",
    Reason.UNBOUNDED: "the data do not bound the estimate on either side, or a value has no logarithm",
    Reason.CENSORED: "too much was cut off by a timeout or a cap to know what the estimate would be",
    Reason.RARE_EVENT: "a few repeats were cut off: there is a tail, and too little was seen of it to say "
    "how heavy it is",
    Reason.RESOLUTION: "the values are too coarse to say how much repeats vary",
    Reason.LINEARISATION: "the formula bends too much between the ends of its inputs' intervals for its own "
    "interval to be believed",
    Reason.DRIFT: "repeats rise or fall over the run, so they are not repeats of one thing",
    Reason.STRADDLES: "the interval lies in neither region as a whole: values on both sides of an edge are "
    "compatible with what was seen",
}
"""What each reason means, in one sentence to the user whom it hits."""

FLAGS: Mapping[str, str] = {
    "approximate": "the interval holds its level only nearly; docs/estimands.md says how nearly",
    "assumes normal": "the interval holds its level where repeats vary normally, and may not elsewhere",
    "tail-untested": "no repeat reached the cap of a metric, so nothing is known of what lies beyond",
    "instrument-unstated": "a metric was recorded by hand, or by an undeclared instrument",
    "imported early": "taken in before a commit had the registration: the data were there first",
    "imported": "measured elsewhere: what was left out before the import, nobody can see",
    "invalid repeats": "a repeat declared itself invalid, or lacks what it should have; where the "
    "verdict is another with it, it is inconclusive",
    "excluded by rule": "a registered rule took repeats out",
    "excluded": "its author took repeats out when their values could be seen; where the verdict is "
    "another with them, it is inconclusive",
    "voided": "its author declared the series broken when its values could be seen; it is not measured anew",
    "resumed repeats": "a repeat went on from what an interrupted attempt of it had left",
    "versions differ": "its sessions ran with different versions of Python or of a library",
    "disputed": "two branches used the same series number; their results give the same verdict",
    "repeats run again": "attempts were lost, by interruption or to the executor, and were run again",
    "surplus repeats": "more repeats came in than were registered; the first ones decide",
    "abandoned series": "another series was begun before this one was complete, and left when code, "
    "subject or registration changed",
    "earlier code": "the experiment's code has changed since: the verdict is about what it was",
    "earlier subject": "what was measured has changed since: the verdict is about what it was",
    CONTRADICTED: "a later series refutes what calibrates its instrument; the verdict stands, on the first",
    BY_HAND: "what calibrates its instrument rests on a number that was recorded by hand, or by an "
    "undeclared instrument",
    FOREKNOWN: 'the author of what calibrates its instrument had seen such data before (data-seen = "full"), '
    "and may have chosen its region by them",
    "second series": "the first series decided nothing, for a reason that is not the claim's; this one, the "
    "next, decides, once",
    "earlier data": "another series was there to be seen before this one was complete",
    "amended after data": "the registration was changed when it had a verdict already",
    WAS_REFUTED: "the registration was changed when it had been refuted; that stays counted as refuted",
    "reworded": "the claim is no longer in the words that were registered",
    "evidence removed": "evidence of the experiment was committed, and is gone or altered since",
    "follows a decided one": "its predecessor is decided, so nothing was left for a successor to decide",
    "rests on an amended one": "what it requires, a predecessor or another of its family was changed when "
    "there was evidence for it",
    "low confidence": "the level is below 95 %, so the verdict is exploratory",
    "contested": "on another branch or tag the same evidence came before its registration, or with it",
    "unbound": "measured at a commit that is not in this repository",
}
"""What each word beside a verdict tells."""

GUARD_HACKING = (
    "editing the subject for no other reason than another try, until a version passes; moving an edge, or "
    "leaving out the slow repeat"
)

REFUTED_BEFORE = (
    "what was measured refutes it, but for what was changed or set aside since: it stays decided, so that a "
    "successor would be exploratory; measure it again as a replication: "
)

_VERSIONS = 8
"""Series of a guard that are told one by one."""

HACKING = (
    "adding repeats to this series, moving an edge, trying another statistic, leaving out the slow repeat, "
    "or measuring again and quoting the better run: each picks the result by its value"
)


def explanation_lines(
    assessment: Assessment,
    study: Study,
    width: int = 80,
    *,
    series: Mapping[str, Sequence[SeriesState]] = _NO_SERIES,
    files: Files = _NO_FILES,
    was_refuted: bool = False,
    read_by: Sequence[str] = (),
    failed: Sequence[str] = (),
    is_open: bool | None = None,
    way_on: str | None = None,
) -> list[str]:
    """Return all that there is to say of one prediction, none of the lines wider than ``width``.

    Args:
        assessment: What is known of it.
        study: Its study.
        width: Of the text, in characters.
        series: What became of every series of each experiment.
        files: The evidence of each experiment.
        was_refuted: Whether what was measured refutes it, if nothing had been done since about what it rests
            on: then it is decided, and a successor of it exploratory.
        read_by: What took the readings, and why each may decide: a line for each instrument.
        failed: Why repeats failed: the causes, and what the first of them said.
        is_open: Whether the next series decides in place of the one that decided nothing; told by its reason
            alone if it is not known.
        way_on: What may still let one be measured that is pending, since what calibrates its instrument has
            failed.
    """
    lines = [f"{assessment.prediction.id}: {_title(assessment)}", ""]
    told = _paragraphs(
        assessment,
        study,
        series,
        read_by,
        failed,
        files=files,
        was_refuted=was_refuted,
        is_open=is_open,
        way_on=way_on,
    )
    for label, text in told:
        for line in broken(text, width - _LABEL):
            lines.append(f"{padded(label, _LABEL)}{line}")
            label = ""  # noqa: PLW2901 - it stands before the first line alone
    return lines


def _title(assessment: Assessment) -> str:
    judgement = assessment.judgement
    if assessment.withdrawal is not None:
        return f"withdrawn, {judgement.verdict}" if judgement is not None else "withdrawn"
    if judgement is None:
        return "pending"
    reason = f" ({judgement.reason})" if judgement.reason else ""
    changed = f", recorded as {assessment.recorded}" if assessment.changed else ""
    return f"{judgement.verdict}{reason}{changed}"


def _paragraphs(
    assessment: Assessment,
    study: Study,
    series: Mapping[str, Sequence[SeriesState]],
    read_by: Sequence[str],
    failed: Sequence[str],
    *,
    files: Files,
    was_refuted: bool,
    is_open: bool | None,
    way_on: str | None,
) -> Iterator[tuple[str, str]]:
    prediction, judgement = assessment.prediction, assessment.judgement
    yield "claim", prediction.claim
    yield "estimated", estimand(prediction, study.experiments)
    yield "rule", decision_rule(prediction, assessment.predicts, assessment.falsifier)
    yield from zip(("read by", *[""] * len(read_by)), read_by, strict=False)
    if assessment.withdrawal is not None:
        yield "withdrawn", _withdrawn(assessment, one_line(assessment.withdrawal.reason))
        if judgement is not None:
            yield "found", _found(assessment, judgement)
        yield "history", _history(assessment)
        return
    if judgement is None:
        yield "pending", f"{assessment.pending}; until every repeat is in, no number is shown"
        yield "history", _history(assessment)
        yield from _versions(assessment)
        yield from _series(series)
        yield from _arms(series)
        for flag in assessment.flags:
            yield "beware", f"{flag}: {FLAGS.get(flag, 'see docs/concepts.md')}"
        if way_on is not None:
            yield "now", way_on
        return
    yield "found", _found(assessment, judgement)
    yield "because", _because(assessment, judgement)
    yield from zip(("failed", *[""] * len(failed)), failed, strict=False)
    yield from _set_aside(assessment, judgement)
    if assessment.earlier is not None:
        yield "before", _before(assessment.earlier)
    yield "history", _history(assessment)
    yield from _versions(assessment)
    yield from _series(series)
    yield from _arms(series)
    if assessment.account is not None:
        yield "cost", _cost(assessment.account)
    for flag in judgement.flags if not assessment.flags else assessment.flags:
        yield "beware", _beware(flag, assessment, study)
    yield from _ways_on(assessment, judgement, study, files, was_refuted=was_refuted, is_open=is_open)


def _beware(flag: str, assessment: Assessment, study: Study) -> str:
    """Return what a word beside a verdict tells; of a reading that nobody is named for, how one is named."""
    told = f"{flag}: {FLAGS.get(flag, 'see docs/concepts.md')}"
    metric = _unstated(assessment.prediction, study) if flag == UNSTATED else None
    if metric is None:
        return told
    source = f"from = {quoted(metric.source)}, " if metric.source else ""
    declared = f'{metric.name} = {{ {source}unit = {quoted(metric.unit)}, instrument = "NAME" }}'
    how = f'{declared}, and [instruments.NAME] trusted = "why"'
    return f"{told}; a study states it before it measures, by a NAME of its own: {how}"


def _unstated(prediction: Prediction, study: Study) -> Metric | None:
    """Return a metric that names no instrument; else one read from a file, which none of ours does."""
    parts = [study.predictions[name] for name in prediction.members] or [prediction]
    used = [
        (study.experiments[name], metric)
        for part in parts
        for name in part.experiments
        for metric in (study.experiments[name].metrics[one] for one in metrics_of(part, name))
        if not metric.exact
    ]
    by_none = (one for _, one in used if one.instrument is None)
    of_files = (one for where, one in used if where.kind == "command" and one.name not in BUILT_IN)
    return next(by_none, None) or next(of_files, None)


def _numbers(assessment: Assessment, found: Judgement | Alternative) -> str:
    held = (*edges(assessment.predicts), *edges(assessment.falsifier))
    return number_text(found.estimate, found.interval, assessment.unit, held)


def _found(assessment: Assessment, judgement: Judgement) -> str:
    numbers = _numbers(assessment, judgement)
    planned = "" if judgement.planned in (None, judgement.n) else f" of {judgement.planned} planned"
    level = f"{100 * judgement.confidence:.4g} %"
    return f"{numbers}, from n {judgement.n}{planned}, {judgement.method}, {level}"


def _withdrawn(assessment: Assessment, reason: str) -> str:
    """Why it was withdrawn, and what that changes."""
    judgement = assessment.judgement
    is_refuted = judgement is not None and judgement.verdict is Verdict.REFUTED
    stays = "it stays counted as refuted" if is_refuted else "it counts no more"
    is_exploratory = assessment.standing == "exploratory"
    never = "it is never measured or judged anew, and its id is never used again"
    return f"{reason}; {never}" + ("" if is_exploratory else f"; {stays}")


def _because(assessment: Assessment, judgement: Judgement) -> str:
    if judgement.reason is not None:
        detail = f" Here: {judgement.detail}." if judgement.detail else ""
        return f"{REASONS[judgement.reason]}.{detail}"
    if assessment.prediction.statistic == "all":
        return judgement.detail or "its parts decide it"
    region = "predicted" if judgement.verdict is Verdict.SUPPORTED else "falsifying"
    note = f" ({judgement.detail})" if judgement.detail else ""
    return f"the whole interval lies in the {region} region{note}"


def _set_aside(assessment: Assessment, judgement: Judgement) -> Iterator[tuple[str, str]]:
    """What was set aside, and what the verdict would be with it."""
    if not judgement.set_aside or (is_unread(judgement) and not judgement.alternatives):
        return
    yield "set aside", listed(judgement.set_aside, "and")
    for other in judgement.alternatives:
        numbers = _numbers(assessment, other)
        yield "", f"with {listed(other.counted, 'and')}: {other.verdict}, {numbers}, n {other.n}"


def _before(first: Beside) -> str:
    judgement = first.judgement
    detail = f": {judgement.detail}" if judgement.detail else ""
    return f"series {first.series}: {judgement.verdict} ({judgement.reason}){detail}"


def _history(assessment: Assessment) -> str:
    grade = assessment.order.grade
    meaning = {
        "confirmatory": "counted as confirmatory",
        "replication": "a replication: its author had seen such data before",
        "exploratory": "exploratory: shown, never counted",
    }[assessment.standing]
    if grade in CONFIRMATORY and assessment.judgement is None:
        return "registered, before any evidence"
    return f"{assessment.order.detail}; {meaning}"


def _versions(assessment: Assessment) -> Iterator[tuple[str, str]]:
    """What every series said of a guard by itself: of the last ones one by one, of all how many."""
    every = assessment.history
    if not every:
        return
    counts = Counter(str(one.verdict) for one in every)
    number = len({one.subject for one in every})
    total = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    yield "versions", f"{number} of its subject, by {len(every)} series: {total}"
    for one in every[-_VERSIONS:]:
        now = ", the one of now" if one.subject == assessment.subject else ""
        yield "", f"series {one.series}: {one.verdict}, version {_short(one.subject)}{now}"


def _series(series: Mapping[str, Sequence[SeriesState]]) -> Iterator[tuple[str, str]]:
    """What became of every series, where there is more to tell than that the first one is complete."""
    label = "series"
    for experiment, several in series.items():
        if all(one.state == "complete" and one.why is None for one in several) and len(several) <= 1:
            continue
        for one in several:
            of = "" if one.planned in (None, one.repeats) else f" of {one.planned}"
            why = f": {one.why}" if one.why else ""
            yield label, f"{experiment}/{one.number} {one.state}, {one.repeats}{of} repeats{why}"
            label = ""


def _arms(series: Mapping[str, Sequence[SeriesState]]) -> Iterator[tuple[str, str]]:
    """What arms were that are versions of the code, in every series."""
    label = "arms"
    for experiment, several in series.items():
        for one in several:
            for version in one.versions:
                yield label, f"in {experiment}/{one.number} {version}"
                label = ""


def _cost(account: Account) -> str:
    """What the deciding series took, with all that was run again."""
    least = "at least " if account.is_least else ""
    money = f", {dollars(account.usd)}" if account.usd else ""
    seconds = f"{account.busy:.3g} s in bodies and {account.idle:.3g} s idle"
    return f"{least}{seconds}{money}, with all that was run again"


def _short(digest: str | None) -> str:
    return (digest or "unknown").removeprefix("sha256:")[:8]


def _ways_on(
    assessment: Assessment,
    judgement: Judgement,
    study: Study,
    files: Files,
    *,
    was_refuted: bool,
    is_open: bool | None,
) -> Iterator[tuple[str, str]]:
    if judgement.reason in (Reason.STRADDLES, Reason.N_TOO_SMALL):
        yield "more", _more(assessment, judgement, study)
    if assessment.prediction.table.kind == "guard":
        yield (
            "now",
            "it is judged anew for the next version of its subject; a replication tells nothing of that",
        )
    elif judgement.verdict is Verdict.INCONCLUSIVE and was_refuted:
        yield "now", REFUTED_BEFORE + replicated(assessment.prediction, study, files)
    elif judgement.verdict is Verdict.INCONCLUSIVE:
        yield "now", _successor(assessment, judgement, study, files, is_open=is_open)
    else:
        replication = "measure it again as a replication, listed beside it: "
        yield "now", replication + replicated(assessment.prediction, study, files)
    is_guard = assessment.prediction.table.kind == "guard"
    yield "p-hacking", GUARD_HACKING if is_guard else HACKING


def _more(assessment: Assessment, judgement: Judgement, study: Study) -> str:
    prediction = assessment.prediction
    unknown = "how many repeats would have decided it cannot be told from these"
    if prediction.statistic in ("all", "formula") or judgement.interval is None:
        return judgement.detail or unknown
    _, scale = registered_unit(study, prediction)
    plan = plan_of(prediction, study.experiments[prediction.experiment], scale)
    seen = plan and hindsight(plan, judgement, assessment.predicts, assessment.falsifier)
    if not seen:
        return unknown
    if seen.word == "undecided":
        return "the estimate lies between the regions, which is undecided by design, at any number of repeats"
    if seen.n is None:
        return "the estimate lies so close to an edge that no affordable number of repeats would decide it"
    noun = "blocks" if plan and plan.paired else "repeats"
    return (
        f"if the truth is what was estimated and {noun} vary as these did, about {seen.n} {noun} would have "
        f"made it {seen.word} with probability {ENOUGH:g}"
    )


def replicated(prediction: Prediction, study: Study, files: Files = _NO_FILES) -> str:
    """Return the commands that begin another series: what is fed by import is not measured here.

    Args:
        prediction: Which one.
        study: Its study.
        files: The evidence of each experiment, which tells with what options its files were taken in.
    """
    fed = [name for name in prediction.experiments if study.experiments[name].kind == "import"]
    commands = [next_import(study.experiments[name], files.get(name, ())) for name in fed]
    if len(fed) < len(prediction.experiments):
        commands.insert(0, "pytest --prereg --prereg-fresh")
    return " and ".join(commands)


def again(judgement: Judgement, prediction: Prediction, study: Study, files: Files = _NO_FILES) -> str:
    """Return how to let the next series decide, and where, if nothing could be read here."""
    way = replicated(prediction, study, files)
    if is_unread(judgement):
        return (
            "the next series decides, for good: run it where the instrument can be read, with "
            f"{way}; both are shown"
        )
    return f"mend what the reason names, then {way}: the next series decides, once, and both are shown"


def is_unread(judgement: Judgement) -> bool:
    """Whether nothing was read in any repeat."""
    return judgement.reason is Reason.INSTRUMENT and not judgement.n


def _successor(
    assessment: Assessment, judgement: Judgement, study: Study, files: Files, *, is_open: bool | None = None
) -> str:
    is_shifted = judgement.reason is Reason.INSTRUMENT and RESTS_ON_AMENDED in assessment.flags
    may_be = judgement.reason in AGAIN and assessment.earlier is None and not is_shifted
    if may_be if is_open is None else is_open:
        return again(judgement, assessment.prediction, study, files)
    if study.table.family == "holm":
        return "a family takes no successor once it has evidence: register one in a study of its own"
    known = "" if assessment.prediction.formula else ", and pytest-prereg power says what number is enough"
    return (
        f'register a successor with follows = "{assessment.prediction.id}", its own number of repeats, and '
        f"new data; both stay{known}"
    )
