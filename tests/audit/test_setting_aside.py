"""What may be said against evidence, and what it does to the verdicts that rest on it, and on each other."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace
from written_studies import WrittenStudy, assessments, ok

from pytest_prereg.audit.series_states import series_states
from pytest_prereg.audit.setting_aside import effect_of, exclude, void
from pytest_prereg.errors import StudyError, UsageError
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.lock import write_lock

HEAD = '[study]\nid = "small"\n'
RUNS = '[experiments.runs]\nrepeats = {}\nmetrics = {{ t = "s" }}\n'
SPREAD = [1.0, 0.97, 1.04, 0.95, 1.02, 0.99, 1.03, 0.96, 1.01, 0.98, 1.05, 0.94]
REASON = "the fan stood still"


def claim(name, predicts="<= 1.1 s", falsifier="> 1.1 s", experiment="runs", more=""):
    return (
        f'[predictions.{name}]\nclaim = "x"\nexperiment = "{experiment}"\nquantity = "t"\n'
        f'predicts = "{predicts}"\nfalsifier = "{falsifier}"\n{more}'
    )


def rows(values, arm=""):
    return {(arm, at): ok(t=value) for at, value in enumerate(values, 1)}


@pytest.fixture
def write(tmp_path):
    numbers = itertools.count()

    def make(*parts):
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return WrittenStudy(folder, "\n".join(parts))

    return make


@pytest.fixture
def small(write):
    """One experiment of five repeats, and a claim that they support."""
    made = write(HEAD, RUNS.format(5), claim("quick"))
    made.session("runs", rows(SPREAD[:5]))
    return made


def said(state, change, *arguments):
    with pytest.raises((StudyError, UsageError)) as caught:
        change(state, *arguments)
    return str(caught.value)


ENDED = {
    Outcome.TASK_FAILED: "failed, and a failure is never dropped",
    Outcome.TIMEOUT: "timed out, and what ran into its limit is never dropped",
    Outcome.EXCLUDED: "is excluded already",
    Outcome.LOST: "was lost to infrastructure, and is run again",
    Outcome.INFRASTRUCTURE: "was lost to infrastructure, and is run again",
}


class TestRefusals:
    @pytest.mark.parametrize("outcome", ENDED)
    def test_only_what_ended_well_or_invalid_is_excluded(self, write, outcome):
        made = write(HEAD, RUNS.format(5), claim("quick"))
        made.session("runs", {**rows(SPREAD[:4]), ("", 5): [(outcome, {})]})
        assert f'PR150: "runs/1/5" {ENDED[outcome]}' in said(
            made.state(), exclude, "runs/1/5", REASON, "tool"
        )

    def test_what_is_never_judged_needs_no_exclusion(self, small):
        small.session("runs", rows([1.0] * 7), series=1)
        small.session("runs", rows([1.0]), series=7, origin="pilot")
        state = small.state()
        beyond = said(state, exclude, "runs/1/7", REASON, "tool")
        assert "PR150" in beyond
        assert "beyond those that were registered" in beyond
        assert "is a pilot, which is never judged" in said(state, exclude, "runs/7/1", REASON, "tool")

    def test_a_reason_and_a_cause_are_needed(self, small):
        state = small.state()
        assert "PR005" in said(state, exclude, "runs/1/1", " ", "tool")
        assert 'did you mean "tool"?' in said(state, exclude, "runs/1/1", REASON, "tol")
        assert "PR005" in said(state, void, "runs/1", "")

    def test_nothing_is_said_against_what_is_not_registered(self, small):
        small.study.lock_path.unlink()
        assert "nothing is registered yet" in said(small.state(), exclude, "runs/1/1", REASON, "tool")

    def test_an_entry_for_what_may_not_be_excluded_is_no_exclusion(self, write):
        """Written into the lock by hand, it is an error, and the failure counts."""
        made = write(HEAD, RUNS.format(5), claim("quick"))
        made.session("runs", {**rows(SPREAD[:4]), ("", 5): [(Outcome.TASK_FAILED, {})]})
        state = made.state()
        lock = exclude(state, "runs/1/4", REASON, "tool")
        forged = replace(lock, exclusions=(replace(lock.exclusions[0], repeat="runs/1/5"),))
        assessment = state.with_lock(forged).assess(state.study.predictions["quick"])
        assert assessment.judgement.reason is Reason.TASK_FAILED
        assert [problem.code for problem in assessment.problems] == ["PR151"]
        unknown = replace(lock, exclusions=(), voided=void(state, "runs/1", REASON).voided)
        unknown = replace(unknown, voided=(replace(unknown.voided[0], series="other/1"),))
        assessment = state.with_lock(unknown).assess(state.study.predictions["quick"])
        assert [problem.code for problem in assessment.problems] == ["PR151"]


class TestEnds:
    """An exclusion neither reopens a series that a stopping rule ended, nor moves its end."""

    def looked(self, write, values, predicts="<= 1.02 s", falsifier="> 1.02 s"):
        made = write(HEAD, RUNS.format("{ looks = [4, 8, 12] }"), claim("quick", predicts, falsifier))
        made.session("runs", rows(values))
        return made.state()

    def test_one_that_takes_the_decision_away_leaves_the_series_complete(self, write):
        state = self.looked(write, [0.9, 0.95, 0.85, 0.9])
        assert state.assess(state.study.predictions["quick"]).judgement.detail == "decided at look 1 of 3"
        for repeat in ("runs/1/1", "runs/1/2", "runs/1/3", "runs/1/4"):
            after = state.with_lock(exclude(state, repeat, REASON, "tool"))
            assert after.series["runs"][0].complete
            judgement = after.assess(state.study.predictions["quick"]).judgement
            assert judgement.verdict in (Verdict.SUPPORTED, Verdict.INCONCLUSIVE)
            assert judgement.reason in (None, Reason.EXCLUDED)

    def test_one_that_would_have_ended_it_sooner_does_not(self, write):
        values = [0.9, 0.91, 1.3, 0.9, 0.9, 0.91, 0.89, 0.9, 0.91, 0.9, 0.9, 0.9]
        state = self.looked(write, values[:8])
        assert not state.series["runs"][0].complete
        after = state.with_lock(exclude(state, "runs/1/3", REASON, "tool"))
        assert not after.series["runs"][0].complete
        assert after.assess(state.study.predictions["quick"]).judgement is None

    def test_an_incomplete_series_is_closed_by_voiding_and_a_complete_one_stays(self, write):
        state = self.looked(write, [0.9, 0.95, 0.85, 0.9])
        assert state.with_lock(void(state, "runs/1", REASON)).series["runs"][0].complete
        state = self.looked(write, [0.9, 0.95])
        after = state.with_lock(void(state, "runs/1", REASON))
        assert not after.series["runs"][0].complete
        assert after.assess(state.study.predictions["quick"]).pending.startswith("no evidence yet")
        (one,) = series_states(after, "runs")
        assert (one.state, one.repeats, one.planned, one.why) == ("voided", 2, 12, REASON)


class TestVoid:
    """``supported`` becomes ``integrity``; all else stays, and so does what others were found to be."""

    def test_a_second_series_does_not_take_over(self, small):
        small.session("runs", rows([1.0, 1.01, 0.99, 1.02, 1.0]), series=2)
        state = small.state()
        after = state.with_lock(void(state, "runs/1", REASON))
        assessment = after.assess(state.study.predictions["quick"])
        assert (assessment.series, assessment.judgement.reason) == (1, Reason.INTEGRITY)
        assert assessment.judgement.detail == (
            f"what gave supported does not stand: series runs/1 is voided ({REASON})"
        )
        assert assessment.judgement.estimate == pytest.approx(0.996)
        (replication,) = assessment.replications
        assert replication.judgement.verdict is Verdict.SUPPORTED

    def test_after_a_first_series_that_decided_nothing_the_next_still_decides(self, write):
        made = write(HEAD, RUNS.format(5), claim("quick"))
        spoiled = {**rows(SPREAD[:4]), ("", 5): [(Outcome.INFRASTRUCTURE, {})] * 4}
        made.session("runs", spoiled)
        made.session("runs", rows(SPREAD[5:10]), series=2)
        state = made.state()
        quick = state.study.predictions["quick"]
        assert state.assess(quick).series == 2
        first = state.with_lock(void(state, "runs/1", REASON)).assess(quick)
        assert (first.series, first.judgement.verdict) == (2, Verdict.SUPPORTED)
        second = state.with_lock(void(state, "runs/2", REASON)).assess(quick)
        assert (second.series, second.judgement.reason) == (2, Reason.INTEGRITY)

    def test_what_requires_it_or_has_it_as_a_member_sees_it_as_it_is_now(self, write):
        other = RUNS.replace("runs", "other")
        made = write(
            HEAD,
            RUNS.format(5),
            other.format(5),
            claim("quick"),
            claim("slow", ">= 2 s", "< 2 s"),
            claim("next", experiment="other", more='requires = ["quick"]\n'),
            claim("free", experiment="other"),
            '[predictions.both]\nclaim = "x"\nall = ["quick", "free"]\n',
            '[predictions.ratio]\nclaim = "x"\nformula = "x / y"\n'
            'inputs = { x = "runs:t", y = "other:t" }\npredicts = "<= 1.2"\nfalsifier = "> 1.2"\n',
        )
        made.session("runs", rows(SPREAD[:5]))
        made.session("other", rows(SPREAD[:5]))
        state = made.state()
        before = assessments(state)
        after_state = state.with_lock(void(state, "runs/1", REASON))
        after = assessments(after_state)
        reasons = {name: one.judgement.reason for name, one in after.items()}
        assert {name for name, one in before.items() if one.judgement.verdict is Verdict.SUPPORTED} == {
            *before
        } - {"slow"}
        assert reasons == {
            "quick": Reason.INTEGRITY,
            "slow": None,
            "next": Reason.REQUIRED,
            "free": None,
            "both": Reason.INTEGRITY,
            "ratio": Reason.INTEGRITY,
        }
        assert after["slow"].judgement.verdict is Verdict.REFUTED
        assert "voided" in after["slow"].flags
        assert "voided" not in after["free"].flags
        changed = [effect.prediction for effect in effect_of(state, after_state)]
        assert changed == ["quick", "next", "both", "ratio"]

    def test_a_successor_is_the_way_on(self, write):
        made = write(HEAD, RUNS.format(5), claim("quick"), claim("again", more='follows = "quick"\n'))
        made.session("runs", rows(SPREAD[:5]))
        made.session("runs", rows(SPREAD[5:10]), series=2)
        state = made.state()
        again = state.study.predictions["again"]
        assert "follows a decided one" in state.assess(again).flags
        after = state.with_lock(void(state, "runs/1", REASON)).assess(again)
        assert (after.series, after.judgement.verdict) == (2, Verdict.SUPPORTED)
        assert "follows a decided one" not in after.flags

    def test_levels_of_a_family_stay_those_of_all_that_was_measured(self, write):
        """Who voids, or spoils, a member of a family that is supported rescues no other from its refutation."""
        others = [f"other{number}" for number in range(3)]
        parts = [RUNS.replace("runs", name).format(5) for name in ["runs", *others]]
        claims = [claim("quick"), *(claim(name, "<= 1.0 s", "> 1.0 s", name) for name in others)]
        made = write(HEAD + 'family = "holm"\n', *parts, *claims)
        made.session("runs", rows(SPREAD[:5]))
        for by, name in zip([0.071, 0.065, 0.055], others, strict=True):
            made.session(name, rows([value + by for value in SPREAD[:5]]))
        state = made.state()
        before = assessments(state)
        assert {before[name].judgement.verdict for name in others} == {Verdict.REFUTED}
        for lock in (void(state, "runs/1", REASON), exclude(state, "runs/1/3", REASON, "tool")):
            write_lock(made.study.lock_path, lock)
            after = assessments(made.state())
            for name in others:
                assert after[name].judgement == before[name].judgement

    def test_branches_that_used_one_number_are_both_without_the_repeat(self, small):
        small.session("runs", rows([1.0, 0.98, 1.03, 0.96, 1.01]))
        state = small.state()
        assert state.series["runs"][0].disputed
        quick = state.study.predictions["quick"]
        after = state.with_lock(exclude(state, "runs/1/3", REASON, "tool")).assess(quick)
        assert (after.judgement.verdict, after.judgement.n) == (Verdict.SUPPORTED, 4)
        voided = state.with_lock(void(state, "runs/1", REASON)).assess(quick)
        assert voided.judgement.reason is Reason.INTEGRITY


class TestRemarks:
    def test_words_beside_the_verdict_say_who_took_what_out(self, write):
        made = write(
            HEAD,
            RUNS.format(9) + 'exclude = ["load_average > 4"]\nmax-excluded = 1\n',
            claim("quick"),
        )
        made.session("runs", rows(SPREAD[:9]))
        state = made.state()
        quick = state.study.predictions["quick"]
        after = state.with_lock(exclude(state, "runs/1/3", REASON, "tool")).assess(quick)
        assert "excluded" in after.flags
        assert "excluded by rule" not in after.flags
        assert "excluded" not in state.assess(quick).flags

    def test_versions_that_differ_between_sessions_are_told(self, small):
        quick = small.study.predictions["quick"]
        assert "versions differ" not in small.state().assess(quick).flags
        small.session("runs", rows(SPREAD[:5]), versions={"python": "3.12"})
        assert "versions differ" in small.state().assess(quick).flags

    def test_series_that_were_left_are_listed_with_the_reason(self, small):
        small.session("runs", rows(SPREAD[:2]), series=2, predictions={"quick": f"sha256:{'0' * 64}"})
        small.session("runs", rows(SPREAD[:3]), series=3)
        states = series_states(small.state(), "runs")
        assert [(one.number, one.state, one.repeats, one.planned, one.why) for one in states] == [
            (1, "complete", 5, 5, None),
            (2, "abandoned", 2, 5, 'the registration of "quick" changed'),
            (3, "open", 3, 5, None),
        ]


class TestConditions:
    def made(self, write):
        return write(HEAD, RUNS.format(5) + 'conditions = { cores = "<= 4" }\n', claim("quick"))

    def test_a_machine_that_is_none_of_those_registered_is_another_scope(self, write):
        made = self.made(write)
        made.session("runs", rows(SPREAD[:5]), environment={"cpu": "a", "cores": 64})
        judgement = made.state().assess(made.study.predictions["quick"]).judgement
        assert judgement.reason is Reason.SCOPE
        assert "cores is 64" in judgement.detail

    def test_sessions_of_other_series_and_pilots_do_not_matter(self, write):
        made = self.made(write)
        made.session("runs", rows(SPREAD[:5]), environment={"cpu": "a", "cores": 2})
        made.session("runs", rows(SPREAD[:5]), series=2, environment={"cpu": "a", "cores": 64})
        made.session("runs", rows(SPREAD[:5]), origin="pilot", environment={"cpu": "a", "cores": 64})
        assert made.state().assess(made.study.predictions["quick"]).judgement.verdict is Verdict.SUPPORTED

    def test_after_one_outside_of_them_the_next_series_decides(self, write):
        made = self.made(write)
        made.session("runs", rows(SPREAD[:5]), environment={"cpu": "a", "cores": 64})
        made.session("runs", rows(SPREAD[:5]), series=2, environment={"cpu": "a", "cores": 2})
        assert made.state().assess(made.study.predictions["quick"]).series == 2

    def test_of_what_was_imported_nobody_can_tell(self, write):
        made = self.made(write)
        made.session("runs", rows(SPREAD[:5]), origin="imported")
        judgement = made.state().assess(made.study.predictions["quick"]).judgement
        assert (judgement.reason, judgement.detail) == (
            Reason.SCOPE,
            "series 1 ran outside of the conditions: it was imported, and nobody can tell whether they held there",
        )


def test_an_unused_repeat_changes_no_digest(write):
    """Its block was dropped, since the other arm's repeat of that block was invalid."""
    arms = 'pairing = "block"\n[experiments.runs.arms.a]\nx = 1\n[experiments.runs.arms.b]\nx = 2\n'
    pair = claim("quick", "<= 1.1", "> 1.1").replace('"t"\n', '"t"\ncontrast = "a / b"\n')
    made = write(HEAD, RUNS.format(6) + arms, pair)
    slots = {**rows(SPREAD[:6], "a"), **rows(SPREAD[6:], "b"), ("b", 3): [(Outcome.INVALID, {"t": 1.0})]}
    made.session("runs", slots)
    state = made.state()
    quick = state.study.predictions["quick"]
    before, after = (
        one.assess(quick) for one in (state, state.with_lock(exclude(state, "runs/1/a/3", REASON, "tool")))
    )
    assert "runs/1/a/3" not in before.judgement.repeats
    assert before.evidence == after.evidence
    used = state.with_lock(exclude(state, "runs/1/a/4", REASON, "tool")).assess(quick)
    assert used.evidence != before.evidence
    assert used.judgement.n == before.judgement.n - 1
