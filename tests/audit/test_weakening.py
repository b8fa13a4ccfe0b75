"""What a changed registration makes easier; what only makes it stricter, or says the same, is not told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.comparing.weakening import EXPERIMENT, METRIC, PREDICTION, WHOLE, weakened
from pytest_prereg.registry.digest import PARSED, PROSE, UNBOUND, registered_content, registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.tables import ExperimentTable, MetricTable, PredictionTable

if TYPE_CHECKING:
    from pytest_prereg.registry.tables import Table

STUDY = """\
[study]
id = "s"
confidence = 0.95
family = "none"

[constants.deadline]
value = 2.0
unit = "s"
source = "a promise"

[instruments.clock]
calibrated-by = ["clock-is-right"]
[instruments.counter]
trusted = "it only counts"

[experiments.e]
repeats = 7
timeout = "60 s"
warmup = 0
max-excluded = 0
exclude = ["load_average > 4"]
conditions = { cores = ">= 8", gpu = "*H100*" }
bounds = { wall = [0, 10] }
order = "interleaved"
unit = "process"
exclusive = true
metrics = { wall = { unit = "s", instrument = "clock", resolution = 0.001, exact = false }, tokens = "token" }
pairing = "none"
subject = ["src/*.py"]
[experiments.e.arms]
a = { size = 1 }
b = { size = 2 }

[experiments.other]
repeats = 7
metrics = { wall = "s" }

[predictions.p]
claim = "It takes less than two seconds."
experiment = "e"
arm = "a"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
requires = ["clock-is-right"]
assumes = ["the fan is on"]
data-seen = "pilot"
one-sided = false
credence = 0.7
cv = 0.1

[predictions.compared]
claim = "The larger one takes twice as long."
experiment = "e"
contrast = "b / a"
quantity = "wall"
predicts = ">= 2"
falsifier = "<= 1"

[predictions.clock-is-right]
claim = "The clock is right."
experiment = "other"
quantity = "wall"
predicts = "[0.9, 1.1] s"
falsifier = "outside [0.5, 1.5] s"

[predictions.clock-again]
claim = "The clock is right, said otherwise."
experiment = "other"
quantity = "wall"
predicts = "[0.8, 1.2] s"
falsifier = "outside [0.5, 1.5] s"

[predictions.guarded]
claim = "It stays fast."
kind = "guard"
on-inconclusive = "fail"
experiment = "e"
arm = "b"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
expected = 1
detect = 4
cv = 0.1

[predictions.from-both]
claim = "Together they take less than five."
inputs = { a = "e[a]:wall", o = "other:wall", limit = "constants:deadline" }
formula = "a + o + limit"
predicts = "<= 5 s"
falsifier = ">= 6 s"

[predictions.all-of-them]
claim = "All of it holds."
all = ["p", "clock-is-right", "compared"]
"""

CLAIMS = STUDY.partition("[predictions.guarded]")[0]
"""Without what can't be of a family, or be looked at early."""


def changed(old: str, new: str, text: str = STUDY) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


def revision(text: str, prediction: str = "p") -> Revision:
    study = load_study(Path("/nowhere/predictions.toml"), text=text)
    return Revision(study=study, prediction=study.predictions[prediction])


def told(text: str, prediction: str = "p", *, before: str = STUDY) -> dict[str, str]:
    """What is told of a study whose text was ``before``."""
    found = weakened(revision(before, prediction), revision(text, prediction))
    assert len({one.what for one in found}) == len(found)
    return {one.what: one.message for one in found}


WEAKER = {
    "support made easier": ('predicts = "<= 2 s"', 'predicts = "<= 2.5 s"', "p", "predicts"),
    "refutation made harder": ('falsifier = ">= 3 s"', 'falsifier = "> 3 s"', "p", "falsifier"),
    "fewer repeats": ("repeats = 7", "repeats = 5", "p", "repeats"),
    "no number of repeats": ("repeats = 7\n", "", "p", "repeats"),
    "lower confidence": ("confidence = 0.95", "confidence = 0.9", "p", "confidence"),
    "more time": ('timeout = "60 s"', 'timeout = "61 s"', "p", "timeout"),
    "no limit": ('timeout = "60 s"\n', "", "p", "timeout"),
    "less time, which hides what is slow": ('timeout = "60 s"', 'timeout = "59 s"', "p", "timeout"),
    "more warm-up": ("warmup = 0", "warmup = 1", "p", "warmup"),
    "another rule": (
        '["load_average > 4"]',
        '["load_average > 4", "gpu_throttled"]',
        "p",
        "exclude gpu_throttled == true",
    ),
    "a wider rule": ('["load_average > 4"]', '["load_average > 3"]', "p", "exclude load_average > 3"),
    "more set aside": ("max-excluded = 0", "max-excluded = 1", "p", "max-excluded"),
    "a condition loosened": ('cores = ">= 8"', 'cores = ">= 4"', "p", "conditions cores"),
    "a condition dropped": (', gpu = "*H100*"', "", "p", "conditions gpu"),
    "another machine": ('gpu = "*H100*"', 'gpu = "*A100*"', "p", "conditions gpu"),
    "narrower bounds": ("wall = [0, 10]", "wall = [0, 2.5]", "p", "bounds wall"),
    "wider bounds": ("wall = [0, 10]", "wall = [0, 20]", "p", "bounds wall"),
    "arms one after the other": ('"interleaved"', '"sequential"', "p", "order"),
    "another unit of repeat": ('unit = "process"', 'unit = "container"', "p", "unit"),
    "a shared machine": ("exclusive = true", "exclusive = false", "p", "exclusive"),
    "a requirement dropped": ('requires = ["clock-is-right"]\n', "", "p", "requires clock-is-right"),
    "a requirement more": (
        '["clock-is-right"]\nassumes',
        '["clock-is-right", "compared"]\nassumes',
        "p",
        "requires compared",
    ),
    "an assumption more": ('["the fan is on"]', '["the fan is on", "no wind"]', "p", "assumes"),
    "one side alone": ("one-sided = false", "one-sided = true", "p", "one-sided"),
    "less seen": ('data-seen = "pilot"', 'data-seen = "none"', "p", "data-seen"),
    "more seen": ('data-seen = "pilot"', 'data-seen = "full"', "p", "data-seen"),
    "another credence": ("credence = 0.7", "credence = 0.9", "p", "credence"),
    "another step": ("resolution = 0.001", "resolution = 0.1", "p", "resolution of wall"),
    "another calibration": ('["clock-is-right"]\n[', '["clock-again"]\n[', "p", "instrument clock"),
    "a calibration dropped": (
        'calibrated-by = ["clock-is-right"]',
        'trusted = "new"',
        "p",
        "instrument clock",
    ),
    "undecided passes": (
        'on-inconclusive = "fail"',
        'on-inconclusive = "pass"',
        "guarded",
        "on-inconclusive",
    ),
    "a member left out": (', "compared"]', "]", "all-of-them", "members compared"),
    "fewer repeats of what a formula reads": ("repeats = 7", "repeats = 5", "from-both", "repeats"),
    "another arm": ('arm = "a"', 'arm = "b"', "p", "question"),
    "another quantity": ('quantity = "wall"', 'quantity = "2 * wall"', "p", "question"),
    "another statistic": ('arm = "a"', 'arm = "a"\nstatistic = "median"', "p", "question"),
    "arms swapped": ('"b / a"', '"a / b"', "compared", "question"),
    "pairing": ('pairing = "none"', 'pairing = "block"', "compared", "question"),
    "another setting of an arm": ("size = 2", "size = 3", "compared", "question"),
    "another constant": ("value = 2.0", "value = 1.0", "from-both", "question"),
    "another input": ('"e[a]:wall"', '"e[b]:wall"', "from-both", "question"),
    "another formula": ('"a + o + limit"', '"a + limit + o - o"', "from-both", "question"),
}


@pytest.mark.parametrize(("old", "new", "prediction", "what"), WEAKER.values(), ids=WEAKER)
def test_what_asks_less_is_told_once_by_its_key(old: str, new: str, prediction: str, what: str):
    assert list(told(changed(old, new), prediction)) == [what]


STRICTER = {
    "support made harder": ('predicts = "<= 2 s"', 'predicts = "<= 1.5 s"', "p"),
    "refutation made easier": ('falsifier = ">= 3 s"', 'falsifier = "> 2 s"', "p"),
    "more repeats": ("repeats = 7", "repeats = 9", "p"),
    "higher confidence": ("confidence = 0.95", "confidence = 0.99", "p"),
    "a narrower rule": ('["load_average > 4"]', '["load_average > 5"]', "p"),
    "no rule": ('exclude = ["load_average > 4"]\n', "", "p"),
    "a condition more": ('cores = ">= 8"', 'cores = ">= 8", memory_gib = ">= 16"', "p"),
    "a narrower condition": ('cores = ">= 8"', 'cores = ">= 16"', "p"),
    "undecided fails": ('on-inconclusive = "fail"\n', "", "guarded"),
    "pilots owned up to": ('data-seen = "pilot"', 'data-seen = "none"', "seen"),
    "a member more": (
        '"clock-is-right", "compared"]',
        '"clock-is-right", "compared", "from-both"]',
        "all-of-them",
    ),
}


@pytest.mark.parametrize(("old", "new", "prediction"), STRICTER.values(), ids=STRICTER)
def test_what_is_only_stricter_is_not_told(old: str, new: str, prediction: str):
    before, after = STUDY, changed(old, new)
    if prediction in ("guarded", "seen"):
        before, after = after, before
        prediction = "p" if prediction == "seen" else prediction
    now = revision(after, prediction)
    digests = {registration_digest(one.study, one.prediction) for one in (revision(before, prediction), now)}
    assert len(digests) == 2
    assert told(after, prediction, before=before) == {}
    assert told(before, prediction, before=after) != {}  # the way back is weaker


SAME = {
    "another unit": ('predicts = "<= 2 s"', 'predicts = "<= 2000 ms"', "p"),
    "a unit of its own": ('predicts = "<= 2 s"', 'unit = "s"\npredicts = "<= 2"', "p"),
    "the same rule, written anew": ('"load_average > 4"', '"load_average  >  4.0"', "p"),
    "the same time": ('timeout = "60 s"', 'timeout = "1 min"', "p"),
    "notes and tags": ('arm = "a"', 'arm = "a"\nnotes = "n"\ntags = ["t"]', "p"),
    "the title": ('id = "s"', 'id = "s"\ntitle = "T"', "p"),
    "the claim's words": ("It takes less than", "It needs less than", "p"),
    "what power was computed with": ("cv = 0.1", "cv = 0.2", "p"),
    "where the threshold comes from": ("cv = 0.1", 'cv = 0.1\nsource = "a paper"', "p"),
    "what another prediction predicts": ('">= 2"', '">= 1.5"', "p"),
    "an arm that is not read": ("size = 2", "size = 3", "p"),
}


@pytest.mark.parametrize(("old", "new", "prediction"), SAME.values(), ids=SAME)
def test_what_no_verdict_depends_on_is_not_told(old: str, new: str, prediction: str):
    assert told(changed(old, new), prediction) == {}


def test_a_move_says_from_what_to_what_in_the_unit_that_was_registered_first():
    text = changed(
        'predicts = "<= 2 s"\nfalsifier = ">= 3 s"', 'predicts = "<= 2500 ms"\nfalsifier = ">= 4 s"'
    )
    assert told(text) == {
        "predicts": 'predicts from "≤ 2 s" to "≤ 2.5 s": easier to support',
        "falsifier": 'falsifier from "≥ 3 s" to "≥ 4 s": harder to refute',
    }


def test_a_bare_number_in_another_unit_is_another_region():
    before = changed('predicts = "<= 2 s"\nfalsifier = ">= 3 s"', 'predicts = "<= 2"\nfalsifier = ">= 3"')
    after = changed('arm = "a"', 'arm = "a"\nunit = "min"', before)
    assert told(after, before=before)["predicts"] == 'predicts from "≤ 2 s" to "≤ 120 s": easier to support'


def test_a_direction_flipped_is_called_that():
    text = changed('predicts = "<= 2 s"\nfalsifier = ">= 3 s"', 'predicts = ">= 3 s"\nfalsifier = "<= 2 s"')
    assert "what would have refuted it supports it now" in told(text)["predicts"]
    assert "harder to refute" in told(text)["falsifier"]


def test_all_that_makes_another_question_of_it_is_one_weakening():
    text = changed('"b / a"\nquantity = "wall"', '"a / b"\nquantity = "tokens"')
    message = told(text, "compared")["question"]
    assert message.startswith("asks another question: ")
    assert 'contrast from "b / a" to "a / b"' in message
    assert 'quantity from "wall" to "tokens"' in message


def test_fewer_repeats_of_one_arm_are_told_with_its_name():
    text = changed("b = { size = 2 }", "b = { size = 2, repeats = 5 }")
    assert told(text, "compared") == {"repeats of b": "repeats of b from 7 to 5: fewer decide"}
    assert told(text) == {}  # it reads the other arm


def test_times_to_look_are_part_of_the_plan():
    looks = changed("repeats = 7", "repeats = { looks = [4, 7] }", CLAIMS)
    sooner = changed("[4, 7]", "[3, 7]", looks)
    assert told(looks, before=CLAIMS) == {
        "looks": "looks from once, at the end to at 4, 7 repeats: it may be decided at other moments"
    }
    assert list(told(CLAIMS, before=looks)) == ["looks"]
    assert list(told(sooner, before=looks)) == ["looks"]


def test_a_family_left_is_told_and_one_joined_is_not():
    family = changed('family = "none"', 'family = "holm"', CLAIMS)
    assert told(CLAIMS, before=family) == {
        "family": 'family from "holm" to "none": each claim has an error rate of its own'
    }
    assert told(family, before=CLAIMS) == {}


def test_another_experiment_is_another_question_and_leaves_its_instrument():
    text = changed('experiment = "e"\narm = "a"', 'experiment = "other"')
    assert list(told(text)) == ["question", "instrument clock"]


def test_a_guard_made_a_claim_is_told():
    text = changed('kind = "guard"\non-inconclusive = "fail"\n', "")
    assert "kind" in told(text, "guarded")


def test_an_instrument_that_needs_no_calibration_is_another_one():
    text = changed('instrument = "clock"', 'instrument = "counter"')
    assert list(told(text)) == ["instrument of wall", "instrument clock"]


def test_a_count_that_may_decide_without_varying_is_told():
    before = changed('tokens = "token"', 'tokens = { unit = "token" }')
    counted = changed('arm = "a"\nquantity = "wall"', 'arm = "a"\nquantity = "tokens"', before)
    before = changed(
        'predicts = "<= 2 s"\nfalsifier = ">= 3 s"',
        'predicts = "<= 2 token"\nfalsifier = ">= 3 token"',
        counted,
    )
    after = changed('{ unit = "token" }', '{ unit = "token", exact = true }', before)
    assert list(told(after, before=before)) == ["exact of tokens"]


def test_a_key_without_a_rule_is_another_question(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(PREDICTION, "credence")
    assert list(told(changed("credence = 0.7", "credence = 0.9"))) == ["question"]


def keys(table: type[Table]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(table)}


def test_every_key_that_a_digest_may_hold_has_a_rule_and_no_other():
    """A key that is added to the model needs a word on what a change of it means."""
    resolved = {"arms", "quantity", "divisor", "q", "reduction", "levels", "points", "formula", "inputs"}
    resolved |= {"predicts", "falsifier", "contrast", "statistic"}
    assert set(PREDICTION) == (keys(PredictionTable) - PROSE - PARSED) | resolved
    assert set(EXPERIMENT) == keys(ExperimentTable) - UNBOUND
    assert set(METRIC) == keys(MetricTable)


@pytest.mark.parametrize("prediction", ["p", "compared", "guarded", "from-both", "all-of-them"])
def test_what_a_digest_does_hold_has_a_rule(prediction: str):
    text = changed('kind = "guard"\non-inconclusive = "fail"\n', "").replace('"none"', '"holm"', 1)
    text = changed("confidence = 0.95", "confidence = 0.99", text)
    one = revision(text, prediction)
    content = registered_content(one.study, one.prediction)
    assert set(content.pop("prediction")) <= set(PREDICTION)
    experiments = [content.pop("experiment", {}), *content.pop("experiments", {}).values()]
    assert all(set(each) <= set(EXPERIMENT) for each in experiments)
    metrics = [metric for each in experiments for metric in each.get("metrics", {}).values()]
    assert all(set(metric) <= set(METRIC) for metric in metrics)
    assert set(content) <= set(WHOLE)
