"""A conjunction has its members' regions, experiments and registrations, and none of its own."""

from __future__ import annotations

import pytest
from study_texts import HEAD, load, refusals

from pytest_prereg.registry.conjunctions import NOT_BESIDE
from pytest_prereg.registry.digest import registered_content, registration_digest
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.lock import amend, plan_registration, register
from pytest_prereg.registry.regions import Region, describe
from pytest_prereg.registry.units import check_units, registered_unit
from pytest_prereg.registry.uses import metrics_of

FASTER = """\
[predictions.faster]
claim = "c"
experiment = "two"
contrast = "new / old"
quantity = "t"
predicts = "<= 0.9"
falsifier = ">= 1"

"""
FREE = """\
[predictions.free]
claim = "c"
experiment = "one"
quantity = "t_train / t_gen"
predicts = "<= 0.25"
falsifier = ">= 0.5"

"""
SHORT = FREE.replace("predictions.free", "predictions.short").replace("t_train / t_gen", "t_gen / t_train")
MEMBERS = FASTER + FREE + SHORT

SWEPT = HEAD.replace("[experiments.two]\n", "[experiments.two]\nsweep = { cols = [1, 2] }\n")
EACH = FASTER.replace('claim = "c"', 'claim = "c"\nfor-each = "cols"')


def both(members: str = '["faster", "free"]', *, lines: str = "", before: str = HEAD + MEMBERS) -> str:
    return f'{before}[predictions.both]\nclaim = "both"\nall = {members}\n{lines}'


def digest(text: str) -> str:
    study = load(text)
    return registration_digest(study, study.predictions["both"])


def test_it_rests_on_all_experiments_of_its_members() -> None:
    prediction = load(both()).predictions["both"]
    assert prediction.members == ("faster", "free")
    assert prediction.experiments == ("one", "two")
    assert (prediction.statistic, prediction.arms, prediction.contrast) == ("all", (), None)
    assert (prediction.quantity.text, prediction.quantity.node) == ("all of faster, free", 0.0)
    assert prediction.predicts == prediction.falsifier == Region(spans=())
    assert metrics_of(prediction, "one") == ()


def test_predictions_keep_the_order_of_the_file() -> None:
    text = HEAD + '[predictions.both]\nclaim = "c"\nall = ["faster", "free"]\n\n' + MEMBERS
    assert list(load(text).predictions) == ["both", "faster", "free", "short"]


def test_nothing_of_its_units_and_regions_is_left_open() -> None:
    study = load(both())
    prediction = study.predictions["both"]
    assert check_units(study) == []
    assert registered_unit(study, prediction) == ("1", 1.0)
    predicts, falsifier = thresholds(prediction, "1")
    assert (predicts.spans, falsifier.spans, describe(predicts)) == ((), (), "")


def test_a_for_each_table_stands_for_all_that_it_makes() -> None:
    before = SWEPT + EACH + FREE
    whole = load(both(before=before)).predictions["both"]
    assert whole.members == ("faster[cols=1]", "faster[cols=2]", "free")
    assert whole.quantity.text == "all of faster, free"
    one = load(both('["faster[cols=2]", "free"]', before=before)).predictions["both"]
    assert one.members == ("faster[cols=2]", "free")
    assert load(both('["faster"]', before=before)).predictions["both"].members == whole.members[:2]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ("[]", 'PR005: prediction "both" needs at least 2 different predictions in "all"'),
        ('["free"]', "PR005"),
        ('["free", "free"]', "PR005"),
        ('["fre", "faster"]', 'PR007: prediction "both" names unknown prediction "fre" in "all"; did you mean "free"?'),
        ('["free[cols=1]", "faster"]', 'PR007: prediction "both" names unknown prediction "free[cols=1]"'),
        ('["both", "free"]', 'PR005: prediction "both" names itself in "all"'),
        ('["faster", "free"]\n[predictions.q]\nclaim = "c"\nall = ["both", "free"]', 'PR005: prediction "q" names "both", which is made of others itself in "all"'),
    ],
)  # fmt: skip
def test_members_are_different_measured_predictions(members: str, message: str) -> None:
    (told,) = refusals(both(members))
    assert message in told


def test_a_guard_is_no_member() -> None:
    guarded = MEMBERS.replace('experiment = "one"', 'experiment = "one"\nkind = "guard"', 1)
    assert any('names guard "free"' in told for told in refusals(both(before=HEAD + guarded)))


def test_what_is_wrong_with_a_member_is_told_there_alone() -> None:
    (told,) = refusals(both(before=HEAD + FASTER + FREE.replace("t_gen", "t_genn")))
    assert 'prediction "free"' in told


def test_members_whose_series_may_end_early_are_refused() -> None:
    before = HEAD.replace("[experiments.one]\nrepeats = 7", "[experiments.one]\nrepeats = { looks = [5, 9] }")
    (told,) = refusals(both(before=before + MEMBERS))
    assert 'PR024: prediction "both" names "free" in "all", whose series may end early' in told


OTHERS = {"inputs": "{}", "detect": "1.0", "expected": "1.0", "cv": "0.1", "sd": "0.1", "one-sided": "true"}


@pytest.mark.parametrize("key", NOT_BESIDE)
def test_what_members_have_for_themselves_a_conjunction_has_not(key: str) -> None:
    value = OTHERS.get(key, '"x"')
    (told,) = refusals(both(lines=f"{key} = {value}\n"))
    assert told.endswith(
        f'PR005: prediction "both" has "{key}" beside "all"; each of its members has its own'
    )


@pytest.mark.parametrize("members", ['"faster"', "[1, 2]"], ids=["a text", "numbers"])
def test_members_that_are_no_texts_are_told_of_once(members: str) -> None:
    (told,) = refusals(both(members))
    assert '"all" is' in told
    assert "it must be a list of text" in told


class TestRegistration:
    def test_what_is_bound_are_the_registrations_of_its_members(self) -> None:
        study = load(both(lines="credence = 0.5\n"))
        members = [registration_digest(study, study.predictions[name]) for name in ("faster", "free")]
        assert registered_content(study, study.predictions["both"]) == {
            "prediction": {"statistic": "all", "credence": 0.5},
            "members": sorted(members),
        }

    def test_their_order_and_their_words_are_no_change(self) -> None:
        assert digest(both('["free", "faster"]')) == digest(both())
        assert digest(both().replace('claim = "c"', 'claim = "d"')) == digest(both())
        assert digest(both().replace("short", "brief")) == digest(both())

    def test_a_change_of_a_member_is_a_change_of_what_it_is_part_of(self) -> None:
        text = both()
        lock = register(load(text), None, plan_registration(load(text), None))
        changed = load(text.replace('"<= 0.25"', '"<= 0.2"', 1))
        assert list(plan_registration(changed, lock).changed) == ["free", "both"]
        amended = amend(lock, changed, ["free", "both"], "a slip")
        assert plan_registration(changed, amended).changed == {}
        assert [len(amended.predictions[name].amendments) for name in ("faster", "free", "both")] == [0, 1, 1]

    def test_other_members_are_another_registration(self) -> None:
        others = (
            both('["faster", "short"]'),
            both('["faster", "free", "short"]'),
            both(lines="credence = 0.5\n"),
        )
        assert len({digest(text) for text in (both(), *others)}) == 4

    def test_its_entry_holds_a_pure_number_and_the_code_of_all_experiments(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pytest_prereg.registry.lock.source_digest", lambda _, each: f"sha256:{each.id}")
        new = plan_registration(load(both()), None).new
        assert (new["both"].unit, new["both"].scale) == ("1", 1.0)
        assert new["both"].experiment not in (None, new["faster"].experiment, new["free"].experiment)
        alone = plan_registration(load(both('["short", "free"]')), None).new
        assert alone["both"].experiment == alone["free"].experiment == "sha256:one"
