"""What must not matter: the sign of an axis, which arm is written first, the unit, the order of blocks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_prereg.judge import Reason

TEST = settings(max_examples=30, deadline=None)
LEVELS = {"x1": 1.0, "x2": 2.0, "x4": 4.0}
ONE = {
    "mean": {},
    "geometric mean": {"statistic": "geometric-mean"},
    "median": {"statistic": "median"},
    "quantile": {"statistic": "quantile", "q": 0.7},
    "sd": {"statistic": "sd"},
}
BLOCKS = {
    "difference": (2, {"contrast": "a - b"}),
    "ratio": (2, {"contrast": "a / b"}),
    "ratio of means": (2, {"contrast": "a / b", "statistic": "mean"}),
    "plateau": (3, {"contrast": "plateau(a, b, c)"}),
    "increasing": (3, {"contrast": "increasing(a, b, c)"}),
    "exponent": (3, {"contrast": "exponent(x)", "levels": LEVELS}),
    "least": (2, {"points": (("x1",), ("x2",)), "reduction": "min"}),
    "geometric mean of points": (
        2,
        {"points": (("x1",), ("x2",)), "reduction": "geometric-mean", "statistic": "geometric-mean"},
    ),
}

real = st.integers(-4000, 4000).map(lambda whole: whole / 1000)
positive = st.integers(1, 4000).map(lambda whole: whole / 1000)


def rows(values, arms, least=3, most=9):
    return st.lists(st.tuples(*[values] * arms), min_size=least, max_size=most)


def mirrored(judgement):
    low, high = judgement.interval
    return -high, -low


def verdict(judgement):
    return judgement.verdict, judgement.reason


class TestNegation:
    """Negating data and regions swaps nothing but signs."""

    def both(self, study, fill, **asked):
        one = fill(study(predicts="[-1, 2]", falsifier="outside [-2, 2.5]", **asked), 1)
        other = fill(study(predicts="[-2, 1]", falsifier="outside [-2.5, 2]", **asked), -1)
        return one.judge(), other.judge()

    def check(self, one, other):
        assert verdict(one) == verdict(other)
        assert one.method == other.method
        if one.interval is None:
            assert other.interval is None
        else:
            assert other.interval == pytest.approx(mirrored(one), rel=1e-12, abs=1e-12)

    @pytest.mark.parametrize("statistic", ["mean", "median"])
    @given(values=st.lists(real, min_size=2, max_size=9), timeouts=st.integers(0, 2))
    @TEST
    def test_one_arm(self, study, statistic, values, timeouts):
        def fill(made, sign):
            made.metrics = {"t": {"unit": "nat"}}
            made.extend(*[sign * value for value in values])
            return made.extend(*[None] * timeouts, outcome="timeout")

        self.check(*self.both(study, fill, statistic=statistic))

    @pytest.mark.parametrize("pairing", ["block", "none"])
    @given(blocks=rows(real, 2))
    @TEST
    def test_a_difference(self, study, pairing, blocks):
        def fill(made, sign):
            return made.blocks(*[(sign * left, sign * right) for left, right in blocks])

        self.check(*self.both(study, fill, contrast="a - b", pairing=pairing))

    @given(low=st.floats(0.05, 0.45), values=st.lists(real, min_size=9, max_size=30))
    @TEST
    def test_a_quantile_is_mirrored_by_the_one_from_above(self, study, low, values):
        regions = {"predicts": "[-9, 9]", "falsifier": "outside [-10, 10]"}
        one = study(statistic="quantile", q=low, **regions).extend(*values).judge()
        other = (
            study(statistic="quantile", q=1 - low, **regions).extend(*[-value for value in values]).judge()
        )
        if one.interval and other.interval:
            assert other.interval == mirrored(one)


@pytest.mark.parametrize("pairing", ["block", "none"])
@given(blocks=rows(positive, 2))
@TEST
def test_a_ratio_and_its_reciprocal_say_the_same(study, pairing, blocks):
    one = study(contrast="a / b", pairing=pairing, predicts="<= 0.5", falsifier=">= 4").blocks(*blocks)
    other = study(contrast="a / b", pairing=pairing, predicts=">= 2", falsifier="<= 0.25")
    other.blocks(*[block[::-1] for block in blocks])
    one, other = one.judge(), other.judge()
    assert verdict(one) == verdict(other)
    low, high = one.interval
    if low > 1e-300 and high < 1e300:
        assert other.interval == pytest.approx((1 / high, 1 / low), rel=1e-11)


@pytest.mark.parametrize("pairing", ["block", "none"])
@given(blocks=rows(positive, 2))
@TEST
def test_so_do_a_bounded_ratio_of_means_and_its_reciprocal(study, pairing, blocks):
    asked = {"contrast": "a / b", "statistic": "mean", "pairing": pairing}
    one = study(**asked, predicts="<= 0.5", falsifier=">= 4").blocks(*blocks).judge()
    other = study(**asked, predicts="<= 0.5", falsifier=">= 4").blocks(*[row[::-1] for row in blocks]).judge()
    if Reason.UNBOUNDED not in (one.reason, other.reason):
        low, high = one.interval
        assert other.interval == pytest.approx((1 / high, 1 / low), rel=1e-9)


@pytest.mark.parametrize("name", ONE)
@given(values=st.lists(positive, min_size=3, max_size=9))
@TEST
def test_a_unit_changes_units_only(study, name, values):
    plain = study(predicts="[1, 2]", falsifier="outside [0.5, 2.5]", **ONE[name]).extend(*values)
    milli = study(predicts="[1000, 2000]", falsifier="outside [500, 2500]", scale=1000.0, **ONE[name])
    plain, milli = plain.judge(), milli.extend(*values).judge()
    assert verdict(plain) == verdict(milli)
    if plain.interval is not None:
        assert milli.interval == pytest.approx([1000 * end for end in plain.interval], rel=1e-12)


@pytest.mark.parametrize("name", ["difference", "plateau", "increasing", "least", "geometric mean of points"])
@given(data=st.data())
@TEST
def test_so_does_the_unit_of_a_contrast(study, name, data):
    arms, asked = BLOCKS[name]
    blocks = data.draw(rows(positive, arms))
    plain = study(predicts="[-1, 1]", falsifier="outside [-2, 2]", pairing="block", **asked)
    milli = study(
        predicts="[-1000, 1000]", falsifier="outside [-2000, 2000]", pairing="block", scale=1000.0, **asked
    )
    plain, milli = plain.blocks(*blocks).judge(), milli.blocks(*blocks).judge()
    assert verdict(plain) == verdict(milli)
    if plain.interval is not None:
        assert milli.interval == pytest.approx([1000 * end for end in plain.interval], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", BLOCKS)
@given(data=st.data())
@TEST
def test_the_order_of_blocks_changes_only_the_drift(study, name, data):
    arms, asked = BLOCKS[name]
    blocks = data.draw(rows(positive, arms))
    regions = {"predicts": "[-1, 1]", "falsifier": "outside [-2, 2]"}
    one = study(**regions, pairing="block", **asked).blocks(*blocks).judge()
    other = study(**regions, pairing="block", **asked)
    other = other.blocks(*data.draw(st.permutations(blocks))).judge()
    assert other.interval == one.interval
    assert other.estimate == one.estimate
    if Reason.DRIFT not in (one.reason, other.reason):
        assert verdict(one) == verdict(other)


def holds(judgement):
    if judgement.estimate is not None:
        low, high = judgement.interval
        assert low <= judgement.estimate <= high


@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.9999])
@pytest.mark.parametrize("name", ONE)
@given(values=st.lists(positive, min_size=1, max_size=12))
@TEST
def test_every_interval_of_one_arm_holds_its_estimate(study, name, confidence, values):
    holds(study(confidence=confidence, **ONE[name]).extend(*values).judge())


@pytest.mark.parametrize("pairing", ["block", "none"])
@pytest.mark.parametrize("name", list(BLOCKS)[:5])
@given(data=st.data())
@TEST
def test_every_interval_of_a_contrast_holds_its_estimate(study, name, pairing, data):
    arms, asked = BLOCKS[name]
    values = positive if name == "ratio" else real
    holds(study(pairing=pairing, **asked).blocks(*data.draw(rows(values, arms))).judge())


@pytest.mark.parametrize("name", list(BLOCKS)[5:])
@given(data=st.data())
@TEST
def test_every_interval_of_levels_and_points_holds_its_estimate(study, name, data):
    arms, asked = BLOCKS[name]
    holds(study(pairing="block", **asked).blocks(*data.draw(rows(positive, arms))).judge())


@given(counts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=9))
@TEST
def test_every_interval_of_trials_holds_its_estimate(study, counts):
    made = study(statistic="proportion", quantity="a", divisor="a + b")
    made.metrics = {name: {"unit": "1", "exact": True} for name in "ab"}
    for passed, failed in counts:
        made.add({"a": float(passed), "b": float(failed or not passed)})
    holds(made.judge())


@given(blocks=rows(real, 2))
@TEST
def test_every_interval_of_sums_holds_its_estimate(study, blocks):
    made = study(statistic="ratio-of-sums", quantity="a", divisor="b")
    made.metrics = {name: {"unit": "s"} for name in "ab"}
    for above, below in blocks:
        made.add({"a": above, "b": below})
    judgement = made.judge()
    holds(judgement)
    assert (judgement.reason is Reason.UNBOUNDED) == math.isinf(judgement.interval[0])
