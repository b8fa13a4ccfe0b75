from __future__ import annotations

import numpy as np
import pytest

from pytest_prereg.judge import Judgement, Reason, Verdict, student_t
from pytest_prereg.judge.conjunctions import judge_all

SUPPORTED, REFUTED, INCONCLUSIVE = Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE
NOISE = [0.00, 0.04, -0.03, 0.02, -0.01, 0.03, -0.02]


def member(name, verdict=SUPPORTED, reason=None, detail=None, **more):
    """One judgement of a member."""
    more = {"n": 7, "planned": 7, "excluded": 0, "flags": (), "repeats": (f"{name}/1/1",), **more}
    numbers = {"estimate": 1.0, "interval": (0.9, 1.1), "confidence": 0.95, "method": "Student t"}
    return Judgement(
        prediction=name, verdict=verdict, reason=reason, detail=detail, statistic="mean", **numbers, **more
    )


def undecided(name, reason, detail):
    """A member that is inconclusive at its own level as at any other."""
    one = member(name, INCONCLUSIVE, reason, detail)
    return one, one


@pytest.fixture
def conjunction(study):
    """The prediction that the members make together; only its id is read."""
    return study().prediction


class TestMembers:
    def test_supported_if_every_member_is_at_its_own_level(self, conjunction):
        weak = (
            member("b", n=5, planned=6, flags=("approximate",)),
            undecided("b", Reason.STRADDLES, "at 1")[0],
        )
        judgement = judge_all(conjunction, [(member("a"), member("a")), weak])
        assert (judgement.verdict, judgement.reason, judgement.detail) == (SUPPORTED, None, None)
        assert (judgement.estimate, judgement.interval) == (None, None)
        assert (judgement.method, judgement.statistic) == ("all of 2", "all")
        assert (judgement.n, judgement.planned, judgement.flags) == (5, 6, ("approximate",))
        assert judgement.repeats == ("a/1/1", "b/1/1")

    def test_refuted_if_any_member_is_at_alpha_over_k(self, conjunction):
        members = [undecided("a", Reason.INTEGRITY, "altered"), (member("b", REFUTED), member("b", REFUTED))]
        judgement = judge_all(conjunction, members)
        assert (judgement.verdict, judgement.detail) == (REFUTED, "b refuted")

    def test_a_member_refuted_only_at_its_own_level_straddles(self, conjunction):
        weak = member("b", REFUTED), undecided("b", Reason.STRADDLES, "straddles 1")[0]
        judgement = judge_all(conjunction, [(member("a"), member("a")), weak])
        assert (judgement.verdict, judgement.reason) == (INCONCLUSIVE, Reason.STRADDLES)
        assert judgement.detail == "b: is refuted on its own, but not at alpha/2 as one of 2 claims"

    def test_the_first_reason_of_any_member_is_told_with_those_that_have_it(self, conjunction):
        members = [
            undecided("a", Reason.STRADDLES, "straddles 1"),
            undecided("b", Reason.N_TOO_SMALL, "needs 3 repeats, has 2"),
            (member("c"), member("c")),
            undecided("d", Reason.N_TOO_SMALL, "needs 6 repeats, has 5"),
        ]
        judgement = judge_all(conjunction, members)
        assert judgement.reason is Reason.N_TOO_SMALL
        assert judgement.detail == "b: needs 3 repeats, has 2; d: needs 6 repeats, has 5"

    def test_what_members_share_is_counted_once(self, conjunction):
        shared = {"repeats": ("e/1/1", "e/1/2"), "set_aside": ("e/1/3",), "excluded": 1}
        members = [(one, one) for one in (member("a", **shared), member("b", **shared))]
        judgement = judge_all(conjunction, members)
        assert (judgement.repeats, judgement.excluded) == (("e/1/1", "e/1/2"), 1)

    def test_there_is_no_conjunction_of_nothing(self, conjunction):
        with pytest.raises(ValueError, match="members"):
            judge_all(conjunction, [])


class TestPoints:
    """A sweep reduced by ``all``: every point is a question of its own."""

    @pytest.fixture
    def swept(self, study):
        def make(*shifts, noise=NOISE, **more):
            points = tuple((f"x{k}",) for k in range(len(shifts)))
            more = {"predicts": "<= 1.1", "falsifier": "> 1.1", "pairing": "block", **more}
            made = study(points=points, reduction="all", statistic="all", **more)
            return made.blocks(*[[shift + one for shift in shifts] for one in noise])

        return make

    def test_supported_if_each_point_is(self, swept):
        judgement = swept(1.0, 0.9, 1.01).judge()
        assert (judgement.verdict, judgement.method, judgement.n) == (SUPPORTED, "all of 3", 7)
        assert len(judgement.repeats) == 21

    def test_refuted_if_any_point_is(self, swept):
        judgement = swept(1.0, 1.5, 0.9).judge()
        assert (judgement.verdict, judgement.detail) == (REFUTED, "x1 refuted")

    def test_one_point_that_straddles_leaves_all_undecided(self, swept):
        judgement = swept(1.0, 1.1, 0.9).judge()
        assert (judgement.reason, judgement.detail) == (Reason.STRADDLES, "x1: straddles 1.1")

    def test_a_refutation_takes_alpha_over_k(self, swept):
        low = {level: student_t([1 + one for one in NOISE], level).low for level in (0.95, 1 - 0.05 / 4)}
        between = sum(low.values()) / 2 - 1
        judgement = swept(0.5, 1.1 - between, 0.5, 0.5).judge()
        assert judgement.reason is Reason.STRADDLES
        assert judgement.detail == "x1: is refuted on its own, but not at alpha/4 as one of 4 claims"
        alone = swept(1.1 - between).judge()
        assert alone.verdict is REFUTED

    def test_differences_and_ratios_are_judged_point_by_point(self, study):
        for contrast, predicts, falsifier in (("a - b", ">= 0.4", "< 0.4"), ("a / b", ">= 1.3", "< 1.3")):
            made = study(contrast=contrast, predicts=predicts, falsifier=falsifier, pairing="block")
            made.points, made.reduction, made.statistic = (("a1", "b1"), ("a2", "b2")), "all", "all"
            made.blocks(*[[1.5 + one, 1.0, 3.0 - one, 2.0 + one] for one in NOISE])
            assert made.judge().verdict is SUPPORTED
            made.repeats.clear()
            made.blocks(*[[1.5 + one, 1.0, 2.1 - one, 2.0 + one] for one in NOISE])
            judgement = made.judge()
            assert (judgement.verdict, judgement.detail) == (REFUTED, "a2 refuted")

    def test_an_exclusion_at_one_point_concerns_all(self, swept):
        made = swept(1.0, 0.9)
        made.add(3.0, arm="x0", block=8, outcome="invalid").add(0.9, arm="x1", block=8)
        judgement = made.judge()
        assert (judgement.reason, judgement.excluded) == (Reason.EXCLUDED, 1)
        assert judgement.detail == "supported without e/1/x0/8, inconclusive with it"

    def test_a_failure_at_one_point_leaves_the_others_to_refute(self, swept):
        made = swept(1.0, 0.9).add(arm="x0", block=8, outcome="task-failed").add(0.9, arm="x1", block=8)
        assert made.judge().reason is Reason.TASK_FAILED
        assert swept(1.0, 1.5).add(arm="x0", block=8, outcome="task-failed").judge().verdict is REFUTED

    def test_what_is_known_from_outside_is_told_once(self, swept):
        for shift in (1.0, 1.5):
            judgement = swept(shift, 0.9).judge(obstacles=[(Reason.INSTRUMENT, "not calibrated")])
            assert (judgement.reason, judgement.detail) == (Reason.INSTRUMENT, "not calibrated")

    def test_looks_share_alpha_before_points_do(self, swept):
        noise = [0.00, 0.02, -0.015, 0.01]
        judgement = swept(1.0, 0.9, looks=[4, 7], noise=noise).judge()
        assert (judgement.verdict, judgement.detail) == (SUPPORTED, "decided at look 1 of 2")
        assert judgement.confidence == pytest.approx(1 - 0.05 / 2)

    def test_refuting_by_chance_is_no_likelier_with_more_points(self, swept):
        """At the edge of every point: 2.5 % at most in all, where each alone would refute 2.5 %."""
        rng = np.random.default_rng(3)
        refuted = 0
        for _ in range(400):
            made = swept(1, 1, 1, 1, predicts="<= 1", falsifier="> 1", noise=[])
            made.blocks(*[[float(one) for one in row] for row in rng.normal(1, 0.1, (5, 4))])
            refuted += made.judge().verdict is REFUTED
        assert refuted / 400 <= 0.025 + 4 * (0.025 * 0.975 / 400) ** 0.5

    def test_points_share_the_level_of_the_test_for_drift(self, swept):
        """Six values that rise throughout: p = 2 / 6!, above 1 % / 4 and below 1 % / 3."""
        rising = [0.00, 0.01, 0.02, 0.03, 0.04, 0.16]

        def judged(*others):
            made = swept(predicts="<= 1.12", falsifier="> 1.3", noise=[])
            made.points = tuple((f"x{k}",) for k in range(1 + len(others)))
            steady = [0.01, -0.02, 0.015, -0.01, 0.02, 0.0]
            rows = zip(rising, steady, strict=True)
            return made.blocks(*[[1 + up, *[one + wave for one in others]] for up, wave in rows]).judge()

        assert judged(0.9, 0.9).reason is Reason.DRIFT
        assert judged(0.9, 0.9, 0.9).verdict is SUPPORTED
