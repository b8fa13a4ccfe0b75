"""Whether all that is compared ran on one kind of machine, and on one that the claim is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.environment import MACHINE_PARTS, place_in
from pytest_prereg.judge.samples import block_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.judge.question import Question


def out_of_scope(question: Question, repeats: Sequence[RecordedRepeat]) -> str | None:
    """How machines differ where they must not, or ``None``; an unknown machine is like any other.

    Two arms need one machine, and so does a series without blocks; blocks may run on different machines if
    each runs on one. Arms that asked for different hardware need one each, all in one place.
    """
    if question.treated:
        return _treated(question, repeats)
    machines = {repeat.machine for repeat in repeats if repeat.machine is not None}
    if len(machines) <= 1:
        return None
    if question.paired:
        return _split_block(repeats, lambda machine: machine)
    by_arm = {arm: _machines_of(arm, repeats) for arm in question.arms}
    if len(by_arm) > 1 and len(set(by_arm.values())) > 1:
        return "the arms ran on different machines: " + "; ".join(
            f"{arm} on {_listed(on)}" for arm, on in by_arm.items()
        )
    return f"the series ran on several machines: {_listed(frozenset(machines))}"


def out_of_conditions(series: Series, repeats: Sequence[RecordedRepeat]) -> str | None:
    """Which registered condition did not hold, and for which repeat or series; ``None`` if all did.

    Repeats that were set aside count too: nobody chooses the conditions by taking out what broke them.
    """
    if series.outside is not None:
        return f"series {series.number} ran outside of the conditions: {series.outside}"
    outside = [repeat for repeat in repeats if repeat.outside is not None]
    if not outside:
        return None
    more = f" (and {len(outside) - 1} more)" if len(outside) > 1 else ""
    return f"repeat {outside[0].id} ran outside of the conditions: {outside[0].outside}{more}"


def _treated(question: Question, repeats: Sequence[RecordedRepeat]) -> str | None:
    """How machines differ in more than the hardware that was asked for: within an arm, or in their place."""
    by_arm = {arm: _machines_of(arm, repeats) for arm in question.arms}
    hardware = {arm: {_hardware_in(machine) for machine in machines} for arm, machines in by_arm.items()}
    for arm, kinds in hardware.items():
        if len(kinds) > 1:
            return f"{arm} asked for one kind of machine, and ran on several: {_listed(frozenset(kinds))}"
    if question.paired:
        return _split_block(repeats, _place_in)
    places = {_place_in(machine) for machines in by_arm.values() for machine in machines}
    if len(places) > 1:
        return f"the arms ran in different places: {_listed(frozenset(places))}"
    return None


def _hardware_in(machine: str) -> str:
    return machine.removesuffix(f"{MACHINE_PARTS}{_place_in(machine)}")


def _place_in(machine: str) -> str:
    return MACHINE_PARTS.join(place_in(machine))


def _split_block(repeats: Sequence[RecordedRepeat], what: Callable[[str], str]) -> str | None:
    machine_of: dict[int, str] = {}
    for repeat in repeats:
        if repeat.machine is not None:
            other = machine_of.setdefault(block_of(repeat), repeat.machine)
            if what(other) != what(repeat.machine):
                return f"block {block_of(repeat)} ran on different machines: {other} and {repeat.machine}"
    return None


def _machines_of(arm: str, repeats: Sequence[RecordedRepeat]) -> frozenset[str]:
    return frozenset(repeat.machine for repeat in repeats if repeat.arm == arm and repeat.machine is not None)


def _listed(machines: frozenset[str]) -> str:
    return " and ".join(sorted(machines)) or "an unknown machine"
