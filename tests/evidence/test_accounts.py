"""What sessions took and cost, against figures computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_samples import attempt, experiment, header, started, study, warmup
from msgspec.structs import replace

from pytest_prereg.evidence.cost import Account, account, dollars, price, rates_of, series_account, taken
from pytest_prereg.evidence.lines import digest, encode
from pytest_prereg.evidence.model import Footer, Outcome
from pytest_prereg.evidence.sessions import SessionFile, parse_session
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.tables import StudyTable


def took(body: float, total: float) -> dict[str, dict[str, float]]:
    return {"seconds": {"body": body, "total": total}}


def session(*lines, lasted: float | None = None, ended: bool = True, **changes) -> SessionFile:
    """A session file; ``lasted`` is what its footer says, which is missing unless it ``ended``."""
    body = b"".join(map(encode, (header(**changes), *lines)))
    footer = Footer(lines=body.count(b"\n"), digest=digest(body), ended="finished", seconds=lasted)
    return parse_session(body + (encode(footer) if ended else b""), Path("gate-a/session.jsonl"))


HOURLY = {ONLY_ARM: 7.2}
"""Two tenths of a cent a second."""


def test_a_session_is_charged_for_as_long_as_it_lasted():
    file = session(*attempt(1, **took(2.0, 3.0)), *attempt(2, **took(4.0, 5.0)), lasted=20.0, rates=HOURLY)

    found = account([file])

    assert found == Account(busy=6.0, charged=20.0, usd=pytest.approx(0.04))
    assert found.idle == 14.0
    assert not found.is_least


def test_what_building_versions_took_is_charged_as_well():
    lines = (*attempt(1, **took(2.0, 3.0)),)
    ended = account([session(*lines, lasted=5.0, built=10.0, rates=HOURLY)])
    killed = account([session(*lines, ended=False, built=10.0, rates=HOURLY)])

    assert ended == Account(busy=2.0, charged=15.0, usd=pytest.approx(0.03))
    assert (ended.idle, killed.charged) == (13.0, 13.0)


def test_one_that_was_killed_took_at_least_what_its_repeats_took():
    lines = (*attempt(1, **took(2.0, 3.0)), *attempt(2, **took(4.0, 5.0)), started(3))
    found = account([session(*lines, ended=False, rates=HOURLY)])

    assert found == Account(busy=6.0, charged=8.0, usd=pytest.approx(0.016), unknown=1, open_ended=1)
    assert found.is_least


def test_what_was_in_flight_when_a_session_was_interrupted_is_in_its_time():
    found = account([session(*attempt(1, **took(2.0, 3.0)), started(2), lasted=9.0, rates=HOURLY)])

    assert (found.charged, found.unknown, found.is_least) == (9.0, 0, False)


def test_faults_and_warm_ups_cost_like_anything_else():
    lines = (
        *warmup(1, **took(1.0, 2.0)),
        *attempt(1, Outcome.INFRASTRUCTURE, **took(0.0, 30.0)),
        *attempt(1, attempt=2, **took(2.0, 3.0)),
        *attempt(2, Outcome.TIMEOUT, **took(60.0, 60.5)),
    )
    found = account([session(*lines, ended=False, rates=HOURLY)])

    assert (found.busy, found.charged) == (63.0, 95.5)
    assert found.usd == pytest.approx(95.5 * 0.002)


def test_every_session_of_a_series_counts_and_no_other():
    first = session(*attempt(1, **took(1.0, 1.0)), lasted=10.0, rates=HOURLY)
    second = session(*attempt(2, **took(1.0, 1.0)), lasted=5.0, rates={ONLY_ARM: 3.6})
    replication = session(*attempt(1, series=2, **took(1.0, 1.0)), lasted=100.0, series=2, rates=HOURLY)
    pilot = session(
        *attempt(1, Outcome.PILOT, series=0, **took(1.0, 1.0)), lasted=7.0, origin="pilot", series=0
    )

    assert series_account([first, second, replication, pilot], 1) == Account(
        busy=2.0, charged=15.0, usd=pytest.approx(0.02 + 0.005)
    )
    assert account([first, second, replication, pilot]).charged == 122.0


def test_pilots_are_bought_and_what_was_imported_is_not():
    pilot = session(
        *attempt(1, Outcome.PILOT, series=0, **took(1.0, 1.0)), lasted=7.0, origin="pilot", series=0
    )
    imported = session(*attempt(1, **took(1.0, 1.0)), origin="imported", rates=HOURLY)

    assert account([pilot]) == Account(busy=1.0, charged=7.0)
    assert account([imported]) == Account()


def test_a_session_that_says_it_was_shorter_than_its_repeats_is_not_believed():
    assert account([session(*attempt(1, **took(2.0, 3.0)), lasted=0.5)]).charged == 3.0


def test_each_arm_pays_for_its_share_of_what_lay_between():
    # 10 s of repeats in 20 s: the dear arm has 2 of 10 parts, so 4 s at 1 USD/s and 16 s at 0.5 USD/s.
    assert price(20.0, {"dear": 2.0, "cheap": 8.0}, {"dear": 3600.0, "cheap": 1800.0}) == pytest.approx(12.0)
    assert price(20.0, {"dear": 2.0, "free": 8.0}, {"dear": 3600.0}) == pytest.approx(4.0)


def test_a_session_of_which_no_repeat_has_an_end_pays_the_highest_rate():
    assert price(10.0, {}, {"dear": 3600.0, "cheap": 1800.0}) == pytest.approx(10.0)
    assert price(10.0, {"a": 0.0}, {}) == 0.0


def test_the_rate_is_the_executors_and_no_rate_is_no_key(tmp_path):
    arms = experiment({"a": 1, "b": 1})
    priced = replace(study(tmp_path), table=StudyTable(id="s", prices={"local": 1.5, "modal": 4.0}))

    assert rates_of(priced, arms, "local") == {"a": 1.5, "b": 1.5}
    assert rates_of(priced, arms, "slurm") == {}
    assert rates_of(study(tmp_path), arms, "local") == {}


def test_what_an_attempt_takes_is_known_of_those_that_ended_whatever_they_are():
    file = session(
        *attempt(1, arm="a", **took(1.0, 2.0)),
        *attempt(2, Outcome.INFRASTRUCTURE, arm="a", **took(0.0, 4.0)),
        *attempt(1, Outcome.LOST, arm="b"),
        ended=False,
        planned={"a": 3, "b": 3},
    )
    found = taken([file, file])

    assert found["a"].mean == 3.0
    assert found["a"].attempts == 4
    assert found["b"].mean is None


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0.0, "$0.00"),
        (5.0, "$5.00"),
        (0.126, "$0.13"),
        (0.0094, "$0.0094"),
        (1e-7, "$0.0000001"),
        (1234.5, "$1234.50"),
    ],
)
def test_amounts_read_as_people_write_them(usd, text):
    assert dollars(usd) == text
