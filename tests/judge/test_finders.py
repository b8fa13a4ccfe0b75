from __future__ import annotations

import pytest

from pytest_prereg.errors import JudgeError
from pytest_prereg.judge import Verdict

ROWS = [(1.0, 1.1), (1.1, 1.3), (1.2, 1.1), (1.05, 1.2)]


@pytest.mark.parametrize(
    ("statistic", "contrast"),
    [
        ("median", "a - b"),
        ("quantile", "a / b"),
        ("sd", "a / b"),
        ("proportion", "a - b"),
        ("ratio-of-sums", "a / b"),
        ("geometric-mean", "a - b"),
        ("geometric-mean", "plateau(a, b)"),
        ("all", None),
        ("formula", None),
    ],
)
def test_no_question_is_answered_by_anothers_method(study, statistic, contrast):
    made = study(statistic=statistic, contrast=contrast, pairing="block", quantity="t < 9")
    made = made.blocks(*ROWS) if contrast else made.extend(1.0, 1.1, 1.2)
    with pytest.raises(JudgeError, match=f'PR023: prediction "p": {statistic}.* has no rule'):
        made.judge()


@pytest.mark.parametrize(
    "asked",
    [
        {"most": 4, "contrast": "a - b"},
        {"most": 4, "contrast": "a / b"},
        {"most": 4, "contrast": "a / b", "statistic": "mean", "pairing": "block"},
        {"most": 4, "contrast": "plateau(a, b)", "pairing": "block"},
        {"most": 4, "contrast": "exponent(x)", "levels": {"a": 1.0, "b": 2.0}, "pairing": "block"},
        {"most": 4, "points": (("a",), ("b",)), "reduction": "min", "pairing": "block"},
        {"contrast": "exponent(x)", "levels": {"a": 1.0, "b": 2.0}},
        {"points": (("a",), ("b",)), "reduction": "min"},
        {"points": (("a",), ("b",)), "reduction": "geometric-mean", "pairing": "block"},
    ],
    ids=lambda asked: " ".join(map(str, asked.values())),
)
def test_what_no_rule_decides_is_refused(study, asked):
    with pytest.raises(JudgeError, match="PR024"):
        study(**asked).blocks(*ROWS).judge()


@pytest.mark.parametrize("statistic", ["median", "quantile", "sd"])
def test_the_anytime_rule_has_no_interval_of_it(study, statistic):
    with pytest.raises(JudgeError, match=r"PR024: .* no interval of it holds at every look"):
        study(statistic=statistic, q=0.9, most=4).extend(1.0, 1.1, 1.2, 1.3).judge()


@pytest.mark.parametrize("pairing", ["block", "none"])
@pytest.mark.parametrize("statistic", ["mean", "geometric-mean"])
def test_a_ratio_is_one_of_what_the_statistic_says(study, statistic, pairing):
    made = study(statistic=statistic, contrast="a / b", pairing=pairing, predicts=">= 0.5", falsifier="< 0.5")
    judgement = made.blocks(*ROWS).judge()
    assert judgement.verdict is Verdict.SUPPORTED
    assert ("Fieller" in judgement.method) == (statistic == "mean")
