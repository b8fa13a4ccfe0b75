"""What a change of regions, repeats, rules and readings makes easier; each takes a change and tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.audit.comparing.changes import QUESTION, Weakening, of, words
from pytest_prereg.registry.dimensions import ratio
from pytest_prereg.registry.environment_conditions import parse_condition
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.refusals import RefusedError, listed, quoted
from pytest_prereg.registry.regions import Region, covers, describe, overlaps, parse_region, scaled
from pytest_prereg.registry.unit_text import parse_unit
from pytest_prereg.registry.units import registered_unit
from pytest_prereg.registry.uses import arms_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.comparing.changes import Change, Revision
    from pytest_prereg.registry.model import Experiment, Stopping


def region(change: Change) -> Iterator[Weakening]:
    """What is predicted, or what falsifies, has moved."""
    try:
        old, new = _thresholds(change)
    except RefusedError as refusal:
        yield Weakening(what=QUESTION, message=f"another unit: {refusal}")
        return
    easier = not _within(new[0], old[0])
    harder = not _within(old[1], new[1])
    if change.key == "predicts" and easier:
        flipped = overlaps(new[0], old[1]) and not overlaps(new[0], old[0])
        effect = "what would have refuted it supports it now" if flipped else "easier to support"
        yield _moved_region("predicts", old[0], new[0], effect)
    elif change.key == "falsifier" and harder:
        yield _moved_region("falsifier", old[1], new[1], "harder to refute")


def _moved_region(what: str, before: Region, after: Region, effect: str) -> Weakening:
    moved = f"{what} from {quoted(describe(before))} to {quoted(describe(after))}"
    return Weakening(what=what, message=f"{moved}: {effect}")


def _thresholds(change: Change) -> tuple[tuple[Region, Region], tuple[Region, Region]]:
    """Both regions of both sides, all in the unit in which the prediction was registered first."""
    old, new = change.old, change.new
    unit, _ = registered_unit(old.study, old.prediction)
    other, _ = registered_unit(new.study, new.prediction)
    factor = ratio(parse_unit(other), parse_unit(unit), other, unit)
    predicts, falsifier = thresholds(new.prediction, other)
    return thresholds(old.prediction, unit), (
        scaled(predicts, factor, unit),
        scaled(falsifier, factor, unit),
    )


def _within(inner: Region, outer: Region) -> bool:
    return all(covers(outer, span) for span in inner.spans)


def pairing(change: Change) -> Iterator[Weakening]:
    """What a missing key stands for depends on what kind of experiment it is."""
    old, new = (_experiment_of(change, side).pairing for side in (change.old, change.new))
    if old != new:
        yield Weakening(what=QUESTION, message=f"pairing from {quoted(old)} to {quoted(new)}")


def unit(change: Change) -> Iterator[Weakening]:
    """Another unit moves the regions that name none, and is no change by itself."""
    for key in ("predicts", "falsifier"):
        yield from region(msgspec.structs.replace(change, key=key))


def repeats(change: Change) -> Iterator[Weakening]:
    """Fewer repeats of an arm, or other times to look at them."""
    for whose, before, after in _of_arms(change, "repeats"):
        if after is None or (before is not None and after < before):
            moved = f"repeats{whose} from {words(before)} to {words(after)}"
            yield Weakening(what=f"repeats{whose}", message=f"{moved}: fewer decide")
    old, new = (_experiment_of(change, side).stopping for side in (change.old, change.new))
    if old != new:
        moved = f"looks from {_looks(old)} to {_looks(new)}"
        yield Weakening(what="looks", message=f"{moved}: it may be decided at other moments")


def _looks(stopping: Stopping | None) -> str:
    if stopping is None:
        return "once, at the end"
    return "after any block" if stopping.anytime else f"at {', '.join(map(str, stopping.looks))} repeats"


def timeout(change: Change) -> Iterator[Weakening]:
    """Both ways: more time lets a failure pass, and less makes an undecided one of what would refute."""
    for whose, before, after in _of_arms(change, "timeout"):
        longer = after is None or (before is not None and after > before)
        effect = "what failed passes" if longer else "slow repeats end before they count against it"
        moved = f"timeout{whose} from {_seconds(before)} to {_seconds(after)}"
        yield Weakening(what=f"timeout{whose}", message=f"{moved}: {effect}")


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.15g} s"


def arm_tables(change: Change) -> Iterator[Weakening]:
    """What arms that are read are, beside how often and how long each is run."""
    yield from repeats(change)
    yield from timeout(change)
    left_out = {"repeats", "timeout"}
    before, after = (
        {
            arm: {key: value for key, value in table.items() if key not in left_out}
            for arm, table in (tables or {}).items()
        }
        for tables in (change.before, change.after)
    )
    for arm in sorted({*before} & {*after}):
        if before[arm] != after[arm]:
            moved = f"arm {quoted(arm)} from {words(before[arm])} to {words(after[arm])}"
            yield Weakening(what=QUESTION, message=moved)


def exclude(change: Change) -> Iterator[Weakening]:
    """A rule that sets aside what none did."""
    old, new = change.before or [], change.after or []
    for rule in new:
        if not any(_implies(rule, known) for known in old):
            text = f"{rule[0]} {rule[1]} {words(rule[2])}"
            message = f"exclude has the new rule {quoted(text)}: more repeats may be set aside"
            yield Weakening(what=f"exclude {text}", message=message)


def _implies(rule: list[Any], known: list[Any]) -> bool:
    """Whether all that a rule sets aside was set aside by another one."""
    if rule == known:
        return True
    if rule[0] != known[0] or {rule[1], known[1]} & {"==", "!="}:
        return False
    return _within(parse_region(f"{rule[1]} {rule[2]}"), parse_region(f"{known[1]} {known[2]}"))


def conditions(change: Change) -> Iterator[Weakening]:
    """Evidence counts from machines, or states of one, that it did not count from."""
    old, new = (_experiment_of(change, side).table.conditions or {} for side in (change.old, change.new))
    for key, value in sorted(old.items()):
        if key not in new:
            message = (
                f"conditions no longer want {key} to be {words(value)}: evidence from more machines counts"
            )
            yield Weakening(what=f"conditions {key}", message=message)
        elif _loosened(key, value, new[key]):
            moved = f"conditions want {key} to be {words(new[key])}, no longer {words(value)}"
            yield Weakening(what=f"conditions {key}", message=f"{moved}: other evidence counts")


def _loosened(key: str, before: object, after: object) -> bool:
    old, new = parse_condition(key, before).wanted, parse_condition(key, after).wanted
    if isinstance(old, Region) and isinstance(new, Region):
        return not _within(new, old)
    return old != new


def bounds(change: Change) -> Iterator[Weakening]:
    """Both ways: narrower ones set repeats aside that would have counted, and wider ones let more pass."""
    old, new = change.before or {}, change.after or {}
    for metric in sorted({*old, *new}):
        before, after = old.get(metric), new.get(metric)
        if before is None or after is None or list(before) != list(after):
            narrower = after is not None and (before is None or after[0] > before[0] or after[1] < before[1])
            effect = "readings that counted don't any more" if narrower else "readings that did not count do"
            moved = f"bounds of {metric} from {words(before)} to {words(after)}"
            yield Weakening(what=f"bounds {metric}", message=f"{moved}: {effect}")


def calibrated(change: Change) -> Iterator[Weakening]:
    """What has to hold before an instrument may decide."""
    before, after = change.before or {}, change.after or {}
    for name, by in sorted(before.items()):
        if name not in after:
            message = (
                f"instrument {quoted(name)} needs no calibration by {listed(by)} any more: it is trusted"
            )
            yield Weakening(what=f"instrument {name}", message=message)
        elif after[name] != by:
            moved = (
                f"instrument {quoted(name)} is calibrated by {listed(after[name])}, no longer by {listed(by)}"
            )
            yield Weakening(what=f"instrument {name}", message=f"{moved}: another reading of it may decide")


def data_seen(change: Change) -> Iterator[Weakening]:
    """Owning up to pilots is none; having seen less can't come with time, and all of it takes a claim out."""
    before, after = (change.default if value is None else value for value in (change.before, change.after))
    if before == "none" and after == "pilot":
        return
    effect = "it is a replication, and counts no more" if after == "full" else "it claims to have known less"
    yield Weakening(what="data-seen", message=f"data-seen from {words(before)} to {words(after)}: {effect}")


def _experiment_of(change: Change, side: Revision) -> Experiment:
    return side.study.experiments[change.experiment]


def _of_arms(change: Change, key: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield whose it is, before and after, where arms that both sides read differ; all alike once."""
    read = [{*arms_of(side.prediction, change.experiment)} for side in (change.old, change.new)]
    old, new = (_experiment_of(change, side).arms for side in (change.old, change.new))
    found = {arm: (getattr(old[arm], key), getattr(new[arm], key)) for arm in sorted(read[0] & read[1])}
    if len(set(found.values())) == 1:
        found = {"": next(iter(found.values()))}
    yield from ((of(arm), *values) for arm, values in found.items() if values[0] != values[1])
