"""Rewards: paid once, to the trajectory that was graded, whatever comes late, twice, wrong or not at all."""

from __future__ import annotations

import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from trajectories import Grades, receipt, several, trajectory  # noqa: E402

from pytest_prereg.measure.workloads.learning.reward_ledger import (  # noqa: E402
    Ending,
    Fault,
    Grade,
    Ledger,
    LedgerError,
    LedgerState,
    RewardUnavailableError,
)
from pytest_prereg.measure.workloads.learning.reward_stage import RewardStage, TaskGrader  # noqa: E402

pytestmark = pytest.mark.torch


def opened(trajectories):
    ledger = Ledger()
    ledger.open(trajectories)
    return ledger


def rewards(ledger, trajectories):
    return [each.grade.reward for each in ledger.receipts(trajectories)]


@given(st.data())
@settings(max_examples=50)
def test_in_whatever_order_and_however_often_they_come_rewards_end_where_they_belong(data):
    trajectories = several(data.draw(st.integers(1, 8)))
    ledger = opened(trajectories)
    arriving = data.draw(st.permutations(range(len(trajectories))))
    again = data.draw(st.lists(st.sampled_from(arriving), max_size=6))
    for place, member in enumerate([*arriving, *again]):
        late = place >= len(arriving)
        assert ledger.settle(receipt(trajectories[member], member - 100 * late)) is not late
    assert rewards(ledger, trajectories) == list(range(len(trajectories)))
    assert ledger.late == len(again)


def test_swapped_receipts_are_refused():
    one, other = several(2)
    ledger = opened([one, other])
    with pytest.raises(LedgerError, match=r"0/0/0 has the digest \w{12}, and the receipt \w{12}"):
        ledger.settle(receipt(other, trajectory=one.id))
    assert not ledger.is_settled(one)


def test_a_late_receipt_of_something_else_is_refused_as_well():
    one, other = several(2)
    ledger = opened([one])
    ledger.settle(receipt(one))
    with pytest.raises(LedgerError, match="a reward is for what was graded alone"):
        ledger.settle(receipt(other, trajectory=one.id))
    assert ledger.late == 0


def test_a_receipt_for_nothing_that_was_opened_is_refused():
    with pytest.raises(LedgerError, match='no trajectory "0/0/1" was opened'):
        opened(several(1)).settle(receipt(several(2)[1]))


def test_ids_that_changed_after_sampling_have_no_reward():
    made = trajectory()
    ledger = opened([made])
    ledger.settle(receipt(made))
    with pytest.raises(LedgerError, match="what is asked for"):
        ledger.receipts([trajectory(response=(3, 5))])


def test_an_id_stands_for_one_trajectory():
    ledger = opened([trajectory()])
    with pytest.raises(LedgerError, match="0/0/0 was opened before"):
        ledger.open([trajectory(response=(9, 9))])


def test_what_is_not_settled_has_no_reward_not_even_0():
    ledger = opened([trajectory()])
    ledger.note(Fault(trajectory="0/0/0", attempt=1, seconds=0.1, reason="gone"))
    with pytest.raises(LedgerError, match="0/0/0 has no reward yet"):
        ledger.receipts([trajectory()])


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_is_a_finite_number(reward):
    with pytest.raises(ValueError, match="raise RewardUnavailableError"):
        Grade(reward=reward)


@pytest.mark.parametrize("reward", [True, 1, torch.tensor(1)])
def test_whatever_number_a_reward_is_it_is_kept_as_what_is_read_back(reward):
    written = msgspec.msgpack.encode(Grade(reward=reward))
    assert written == msgspec.msgpack.encode(msgspec.msgpack.decode(written, type=Grade))
    assert type(Grade(reward=reward).reward) is float


@pytest.mark.parametrize("reward", ["1", None])
def test_what_is_no_number_is_no_reward(reward):
    with pytest.raises(TypeError, match="a reward is a number, and not"):
        Grade(reward=reward)


def test_what_timed_out_is_worth_nothing():
    with pytest.raises(ValueError, match="give 0"):
        Grade(reward=0.5, ending=Ending.TIMED_OUT)


def test_a_ledger_goes_on_from_its_state():
    made = several(3)
    ledger = opened(made)
    ledger.settle(receipt(made[0], 5))
    ledger.settle(receipt(made[0], 6))
    ledger.note(Fault(trajectory=made[1].id, attempt=1, seconds=0.1, reason="gone"))
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(ledger.state()), type=LedgerState)
    again = Ledger(stored)
    assert again.state() == ledger.state()
    assert not again.settle(receipt(made[0], 7))
    assert rewards(again, made[:1]) == [5]


def run(trajectories, grades, *, workers=4, attempts=1, ledger=None, settled=lambda _: None):
    ledger = ledger or opened(trajectories)
    with RewardStage(grades, ledger, workers=workers, attempts=attempts, settled=settled) as stage:
        stage.start(trajectories)
        stage.wait()
        stage.settle()
    return ledger


@given(st.lists(st.sampled_from([0.0, 0.001, 0.004]), min_size=1, max_size=8), st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_whoever_is_slow_gets_its_own_reward(delays, workers):
    trajectories = several(len(delays))
    ledger = run(trajectories, Grades(delay=lambda each: delays[each.ids[-1]]), workers=workers)
    assert rewards(ledger, trajectories) == list(range(len(delays)))


def test_a_fault_is_tried_again_and_every_try_is_told():
    trajectories = several(3)
    grades = Grades(faults={"0/0/1": 2}, delay=lambda _: 0.01)
    ledger = run(trajectories, grades, attempts=3)
    assert rewards(ledger, trajectories) == [0, 1, 2]
    assert [receipt.attempt for receipt in ledger.receipts(trajectories)] == [1, 3, 1]
    assert [(fault.trajectory, fault.attempt) for fault in ledger.faults] == [("0/0/1", 1), ("0/0/1", 2)]
    assert all(fault.seconds >= 0.01 for fault in ledger.faults)
    assert ledger.receipts(trajectories)[1].seconds >= 0.03
    assert grades.asked.count("0/0/1") == 3


def test_a_fault_that_stays_is_no_reward_of_0_and_the_others_are_settled():
    trajectories = several(4)
    ledger = opened(trajectories)
    with pytest.raises(RewardUnavailableError, match="0/0/2 has no reward after 2 attempts: no answer about"):
        run(trajectories, Grades(faults={"0/0/2": 9}), attempts=2, ledger=ledger)
    assert [ledger.is_settled(each) for each in trajectories] == [True, True, False, True]
    assert len(ledger.faults) == 2


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), TimeoutError(), OSError(24, "too many")])
def test_an_error_of_the_system_is_a_fault_and_no_verdict(error):
    class Cut(Grades):
        def grade(self, each):
            super().grade(each)
            raise error

    grades, ledger = Cut(), opened(several(1))
    with pytest.raises(RewardUnavailableError, match=r"after 3 attempts: .*(gone|TimeoutError|too many)"):
        run(several(1), grades, attempts=3, ledger=ledger)
    assert len(grades.asked) == len(ledger.faults) == 3


def test_the_fault_that_is_told_of_a_trajectory_is_its_own():
    delays = [0.0, 0.02]
    grades = Grades(faults={"0/0/0": 1, "0/0/1": 1}, delay=lambda each: delays[each.ids[-1]])
    with pytest.raises(RewardUnavailableError, match=r"0/0/0 has no reward .* about 0/0/0; .* about 0/0/1"):
        run(several(2), grades)


@pytest.mark.parametrize("given", [None, 1.0])
def test_a_grader_returns_grades(given):
    class Bare(Grades):
        def grade(self, each):
            super().grade(each)
            return given

    with pytest.raises(TypeError, match=f"returned {given} for trajectory 0/0/0: return a Grade"):
        run(several(1), Bare())


def test_what_is_cut_short_by_an_error_elsewhere_is_not_tried_again():
    begun = threading.Event()

    class Hangs(Grades):
        def grade(self, each):
            super().grade(each)
            begun.set()
            self.cleared.wait(5)
            raise ConnectionAbortedError

        cleared = threading.Event()

        def close(self):
            self.cleared.set()

    grades = Hangs()

    def fails_meanwhile():
        with RewardStage(grades, opened(several(1)), workers=1, attempts=9) as stage:
            stage.start(several(1))
            begun.wait(5)
            raise RuntimeError("elsewhere")

    with pytest.raises(RuntimeError, match="elsewhere"):
        fails_meanwhile()
    assert grades.asked == ["0/0/0"]


def test_an_error_of_the_grader_is_no_fault_of_the_infrastructure():
    class Broken(Grades):
        def grade(self, each):
            raise KeyError(each.id)

    with pytest.raises(KeyError):
        run(several(2), Broken(), attempts=3)


def test_what_is_settled_is_not_graded_again():
    trajectories = several(3)
    ledger = opened(trajectories)
    ledger.settle(receipt(trajectories[1], 1))
    grades, told = Grades(), []
    run(trajectories, grades, ledger=ledger, settled=told.append)
    assert sorted(grades.asked) == ["0/0/0", "0/0/2"]
    assert sorted(receipt.trajectory for receipt in told) == ["0/0/0", "0/0/2"]


def test_rewards_are_given_while_the_next_group_is_generated():
    """The first group's grading begins before the second group exists, and waiting is for what is left."""
    first, second = several(4)[:2], several(4)[2:]
    begun = threading.Event()

    class Told(Grades):
        def grade(self, each):
            begun.set()
            return super().grade(each)

    ledger = opened([*first, *second])
    with RewardStage(Told(), ledger, workers=2, attempts=1) as stage:
        stage.start(first)
        assert begun.wait(5)
        stage.start(second)
        stage.wait()
        stage.settle()
    assert rewards(ledger, [*first, *second]) == [0, 1, 2, 3]


def test_an_error_elsewhere_does_not_wait_for_rewards_that_have_not_begun():
    grades = Grades(delay=lambda _: 0.05)

    def fails_meanwhile():
        with RewardStage(grades, opened(several(40)), workers=1, attempts=1) as stage:
            stage.start(several(40))
            raise RuntimeError("elsewhere")

    with pytest.raises(RuntimeError, match="elsewhere"):
        fails_meanwhile()
    assert len(grades.asked) < 40


def test_a_task_pays_for_the_response_alone():
    class Task:
        def reward(self, prompt, response):
            return sum(prompt) * 10 + len(response)

    assert TaskGrader(Task()).grade(trajectory(prompt=(1, 2), response=(9, 9))).reward == 32
