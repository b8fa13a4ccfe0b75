"""What repeats cost that a service ran, and who took up what: by files as sessions write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_samples import attempt, finished, header, started
from msgspec.structs import replace

from pytest_prereg.evidence.cost import Account, account, series_account, taken
from pytest_prereg.evidence.lines import digest, encode
from pytest_prereg.evidence.model import Footer, Launched, Outcome
from pytest_prereg.evidence.series import handed_on
from pytest_prereg.evidence.sessions import parse_session
from pytest_prereg.registry.model import ONLY_ARM

HOURLY = {ONLY_ARM: 7.2}
"""Two tenths of a cent a second."""


def session(*lines, name="1", lasted=None, ended=True, executor="modal", **changes):
    body = b"".join(map(encode, (header(**{"executor": executor, "rates": HOURLY, **changes}), *lines)))
    footer = Footer(lines=body.count(b"\n"), digest=digest(body), ended="interrupted", seconds=lasted)
    return parse_session(body + (encode(footer) if ended else b""), Path(f"gate-a/{name}.jsonl"))


def took(body: float, total: float, **more: float):
    return {"seconds": {"body": body, "total": total, **more}}


def called(index: int, call: str, *, attached: bool = False, **more):
    """A repeat that a service runs, as far as a session saw before it was killed."""
    begun = replace(started(index, **more), attached=attached)
    return [begun, Launched(repeat=begun.repeat, attempt=begun.attempt, call=call)]


def test_each_repeat_costs_its_own_seconds_and_waiting_costs_nothing():
    """An hour in a queue, and a session that lasted two, beside one on this machine that lasted as long."""
    lines = (*attempt(1, **took(2.0, 3.0, queue=3600.0)), *attempt(2, **took(4.0, 5.0)))
    there, here = (session(*lines, lasted=7200.0, executor=name) for name in ("modal", "local"))

    assert account([there]) == Account(busy=6.0, charged=8.0, usd=pytest.approx(0.016))
    assert account([here]) == Account(busy=6.0, charged=7200.0, usd=pytest.approx(14.4))
    assert account([there]).idle == 2.0


def test_arms_are_paid_at_their_own_rates_whatever_the_others_take():
    lines = (*attempt(1, arm="a", **took(0.0, 10.0)), *attempt(1, arm="b", **took(0.0, 30.0)))
    planned = {"a": 3, "b": 3}
    file = session(*lines, planned=planned, rates={"a": 360.0})

    assert account([file]).usd == pytest.approx(1.0)


def test_a_fault_costs_what_its_container_took():
    lines = (*attempt(1, Outcome.INFRASTRUCTURE, **took(0.0, 30.0)), *attempt(1, attempt=2, **took(2.0, 3.0)))
    assert account([session(*lines)]).usd == pytest.approx(33 * 0.002)


@pytest.mark.parametrize("ended", [True, False])
def test_what_was_stopped_took_nobody_knows_how_long_though_its_session_has_an_end(ended):
    found = account([session(*attempt(1, **took(2.0, 3.0)), *called(2, "fc-1"), lasted=9.0, ended=ended)])
    assert (found.charged, found.unknown, found.is_least) == (3.0, 1, True)


def test_what_a_later_session_took_up_is_known_and_paid_for_once():
    first = session(*attempt(1, **took(2.0, 3.0)), *called(2, "fc-1"), *called(3, "fc-2"), ended=False)
    second = session(
        *called(2, "fc-1", attached=True), finished(2, **took(4.0, 5.0)),
        *called(3, "fc-2", attached=True), finished(3, **took(4.0, 5.0)),
        name="2", lasted=1.0,
    )  # fmt: skip

    assert account([first]).unknown == 2
    assert account([second, first]) == Account(busy=10.0, charged=13.0, usd=pytest.approx(0.026))
    assert not series_account([first, second], 1).is_least
    assert {name: len(several) for name, several in handed_on([first, second]).items()} == {"1.jsonl": 2}
    assert taken([first, second])[ONLY_ARM].mean == pytest.approx(13 / 3)


def test_what_was_handed_on_twice_and_then_lost_is_unknown_once():
    every = [
        session(*called(1, "fc-1", attached=name != "1"), name=name, ended=False) for name in ("1", "2", "3")
    ]
    assert account(every).unknown == 1
    assert {*handed_on(every)} == {"1.jsonl", "2.jsonl"}


def test_what_the_service_had_forgotten_is_lost_though_its_repeat_was_run_again():
    first = session(*called(1, "fc-1"), ended=False)
    second = session(*called(1, "fc-2", attempt=2), finished(1, attempt=2, **took(1.0, 1.0)), name="2")
    assert account([first, second]).unknown == 1
    assert handed_on([first, second]) == {}


def test_a_forecast_for_a_service_goes_by_what_repeats_took_there():
    here = session(*attempt(1, **took(1.0, 100.0)), executor="local")
    there = session(*attempt(2, **took(1.0, 2.0)), name="2")
    assert taken([here, there], "modal")[ONLY_ARM].mean == 2.0
    assert taken([here], "modal") == {}
