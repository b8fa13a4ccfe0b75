"""What must be there, come first, or be right before a prediction can be decided."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_texts import HEAD, load, refusals

from pytest_prereg.registry.digest import registered_content, registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock_file import read_lock
from pytest_prereg.registry.relations import predecessor

INSTRUMENTED = HEAD.replace(
    '[experiments.two]\nrepeats = 7\nmetrics = { t = "s" }',
    '[experiments.two]\nrepeats = 7\nmetrics = { t = { unit = "s", instrument = "clock" } }',
)
CALIBRATED = '[instruments.clock]\ncalibrated-by = ["a"]\n'
SWEPT = HEAD.replace("[experiments.one]\n", "[experiments.one]\nsweep = { cols = [1, 2] }\n")


def claims(*, head: str = HEAD, rest: str = "", **lines: str) -> str:
    """A study with predictions of these ids, each with these lines over a sound table."""
    sound = (
        'claim = "c"\nexperiment = "one"\nquantity = "t_gen"\npredicts = "< 1 s"\nfalsifier = "otherwise"\n'
    )
    return head + "".join(f"[predictions.{name}]\n{sound}{line}\n" for name, line in lines.items()) + rest


def beside_a_sweep(lines: str) -> str:
    """A study with ``a``, which has these lines and no sweep, and ``b`` for each of two points."""
    text = claims(head=SWEPT, a=lines, b='for-each = "cols"')
    return text.replace(
        'experiment = "one"\nquantity = "t_gen"', 'experiment = "two"\narm = "new"\nquantity = "t"', 1
    )


def told(text: str) -> list[str]:
    return [message.split(": ", 1)[1] for message in refusals(text)]


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        ({"a": 'requires = ["b"]', "b": ""}, []),
        ({"a": 'requires = ["b"]', "b": 'follows = "c"', "c": ""}, []),
        ({"a": 'requires = ["a"]'}, ['PR005: prediction "a": "requires" names itself']),
        ({"a": 'follows = "a"'}, ['PR005: prediction "a": "follows" names itself']),
        ({"abc": 'requires = ["adc"]'}, ['PR007: prediction "abc": "requires" names unknown prediction "adc"; did you mean "abc"?']),
        ({"a": 'follows = "xyz"'}, ['PR007: prediction "a": "follows" names unknown prediction "xyz"; known: "a"']),
        ({"a": 'requires = ["b[cols=1]"]', "b": ""}, ['PR007: prediction "a": "requires" names unknown prediction "b[cols=1]"; known: "a" and "b"']),
        ({"a": 'requires = ["b"]', "b": 'follows = "a"'}, ['PR005: prediction "a": rests on "b", which rests on "a": none of them could ever be decided first']),
        ({"a": 'requires = ["b"]', "b": 'requires = ["c"]', "c": 'requires = ["b"]'}, ['PR005: prediction "b": rests on "c", which rests on "b": none of them could ever be decided first']),
    ],
)  # fmt: skip
def test_relations_lead_to_other_predictions_and_not_in_a_circle(
    lines: dict[str, str], messages: list[str]
) -> None:
    assert told(claims(**lines)) == messages


def test_a_member_that_requires_its_conjunction_is_a_circle() -> None:
    both = '[predictions.both]\nclaim = "c"\nall = ["a", "b"]\n'
    (message,) = refusals(claims(a='requires = ["both"]', b="", rest=both))
    assert 'prediction "a": rests on "both", which rests on "a"' in message


def test_each_circle_is_told_once() -> None:
    text = claims(a='requires = ["b"]', b='requires = ["a"]', c='requires = ["d"]', d='requires = ["c"]')
    assert [message[:22] for message in told(text)] == ['PR005: prediction "a":', 'PR005: prediction "c":']


def test_a_prediction_that_could_not_be_read_is_no_unknown_one() -> None:
    text = claims(a='requires = ["b", "b[cols=1]"]\nfollows = "b"', b='for-each = "rows"')
    assert [message[:22] for message in told(text)] == ['PR007: prediction "b":']


class TestForEach:
    def test_a_table_and_each_prediction_that_it_makes_can_be_required(self) -> None:
        text = beside_a_sweep('requires = ["b", "b[cols=2]"]')
        assert list(load(text).predictions) == ["a", "b[cols=1]", "b[cols=2]"]

    def test_no_other_point_can(self) -> None:
        text = beside_a_sweep('requires = ["b[cols=3]"]')
        (message,) = told(text)
        assert message.startswith(
            'PR007: prediction "a": "requires" names unknown prediction "b[cols=3]"; did you'
        )

    def test_a_successor_follows_the_prediction_at_its_own_point(self) -> None:
        study = load(claims(head=SWEPT, a='for-each = "cols"\nfollows = "b"', b='for-each = "cols"'))
        followed = {name: predecessor(each, study.predictions) for name, each in study.predictions.items()}
        assert followed == {
            "a[cols=1]": "b[cols=1]",
            "a[cols=2]": "b[cols=2]",
            "b[cols=1]": None,
            "b[cols=2]": None,
        }

    def test_a_single_successor_follows_one_of_them(self) -> None:
        study = load(beside_a_sweep('follows = "b[cols=2]"'))
        assert predecessor(study.predictions["a"], study.predictions) == "b[cols=2]"
        (message,) = told(beside_a_sweep('follows = "b"'))
        assert message == (
            'PR005: prediction "a": "follows" names "b", which is 2 predictions; name one, such as "b[cols=1]"'
        )


class TestInstruments:
    READ = '[predictions.read]\nclaim = "c"\nexperiment = "two"\narm = "new"\nquantity = "t"\npredicts = "< 1 s"\nfalsifier = "otherwise"\n'

    def test_claims_of_other_metrics_calibrate(self) -> None:
        assert told(claims(head=INSTRUMENTED, a="", rest=self.READ + CALIBRATED)) == []

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (READ + CALIBRATED.replace('"a"', '"read"'), '"read" is read with it, so it can\'t calibrate it'),
            (CALIBRATED.replace('"a"', '"aa"'), '"calibrated-by" names unknown prediction "aa"; did you mean "a"?'),
        ],
    )  # fmt: skip
    def test_what_is_read_with_it_does_not(self, text: str, message: str) -> None:
        messages = told(claims(head=INSTRUMENTED, a="", rest=text))
        assert [each.split(": ", 2)[2] for each in messages] == [message]

    def test_nor_does_what_rests_on_that(self) -> None:
        (message,) = told(claims(head=INSTRUMENTED, a='requires = ["read"]', rest=self.READ + CALIBRATED))
        assert message == (
            'PR005: instrument "clock": "a" rests on "read", which is read with it, so it can\'t calibrate it'
        )

    def test_nor_does_what_rests_on_it_through_another_instrument(self) -> None:
        head = INSTRUMENTED.replace('t_gen = "s"', 't_gen = { unit = "s", instrument = "ruler" }')
        text = claims(head=head, a="", rest=self.READ + CALIBRATED)
        assert told(text + '[instruments.ruler]\ntrusted = "it is made of steel"\n') == []
        (message, other) = told(text + '[instruments.ruler]\ncalibrated-by = ["read"]\n')
        assert '"a" rests on "read", which is read with it' in message
        assert '"read" rests on "a", which is read with it' in other

    def test_nor_does_a_guard(self) -> None:
        text = claims(head=INSTRUMENTED, a='kind = "guard"', rest=CALIBRATED)
        assert 'PR005: instrument "clock": "calibrated-by" names guard "a"; name claims' in told(text)


class TestDigest:
    def digest(self, text: str, name: str = "a") -> str:
        study = load(text)
        return registration_digest(study, study.predictions[name])

    def test_what_must_come_first_is_bound_in_any_order(self) -> None:
        two = self.digest(claims(a='requires = ["b", "c"]', b="", c=""))
        assert self.digest(claims(a='requires = ["c", "b"]', b="", c="")) == two
        others = (claims(a='requires = ["b"]', b=""), claims(a='follows = "b"', b=""), claims(a="", b=""))
        assert len({two, *map(self.digest, others)}) == 4

    def test_the_calibration_of_an_instrument_that_is_used_is_bound(self) -> None:
        read = TestInstruments.READ
        text = claims(head=INSTRUMENTED, a="", b="", rest=read + CALIBRATED)
        study = load(text)
        assert registered_content(study, study.predictions["read"])["instruments"] == {"clock": ["a"]}
        assert "instruments" not in registered_content(study, study.predictions["a"])
        assert self.digest(text.replace('by = ["a"]', 'by = ["a", "b"]'), "read") != self.digest(text, "read")

    def test_why_an_instrument_is_trusted_is_prose(self) -> None:
        text = claims(head=INSTRUMENTED, rest=TestInstruments.READ + '[instruments.clock]\ntrusted = "x"\n')
        assert self.digest(text.replace('trusted = "x"', 'trusted = "y"'), "read") == self.digest(
            text, "read"
        )
        study = load(text)
        assert "instruments" not in registered_content(study, study.predictions["read"])


def test_no_registration_of_this_repository_has_changed() -> None:
    path = Path(__file__).parents[2] / "predictions.toml"
    study, lock = load_study(path), read_lock(path.with_suffix(".lock"))
    assert lock is not None
    digests = {name: registration_digest(study, each) for name, each in study.predictions.items()}
    assert digests == {name: entry.digest for name, entry in lock.predictions.items()}


class TestGuards:
    SUBJECT = HEAD.replace("[experiments.one]\n", '[experiments.one]\nsubject = ["src/**"]\n')
    DEMANDS = 'kind = "guard"\nexpected = 0.5\ndetect = 2.0\ncv = 0.1'

    def test_a_guard_says_what_it_guards_and_how_well(self) -> None:
        study = load(claims(head=self.SUBJECT, a=self.DEMANDS + '\non-inconclusive = "fail"'))
        assert study.predictions["a"].table.kind == "guard"

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ('kind = "guard"', 'PR004: prediction "a" is a guard and lacks "expected", "detect" and "cv": without'),
            ('kind = "guard"\nexpected = 1.0\nsd = 0.1', 'PR004: prediction "a" is a guard and lacks "detect": without'),
            ('kind = "guard"\nexpected = 1.0\ndetect = 2.0', 'PR004: prediction "a" is a guard and lacks "cv": without'),
            (DEMANDS + '\nfollows = "b"', 'PR005: prediction "a" is a guard, which is judged anew in any case'),
            ('on-inconclusive = "pass"', 'PR005: prediction "a" has "on-inconclusive", which only a guard'),
            ('follows = "g"', 'PR005: prediction "a": "follows" names guard "g"; only a claim stays inconclusive'),
            ('requires = ["g"]', 'PR005: prediction "a": "requires" names guard "g"; a claim is decided once, a guard'),
        ],
    )  # fmt: skip
    def test_what_a_guard_lacks_or_only_a_guard_has_is_told(self, lines: str, message: str) -> None:
        (each,) = told(claims(head=self.SUBJECT, a=lines, b="", g=self.DEMANDS))
        assert each.startswith(message)

    def test_a_guard_needs_a_subject(self) -> None:
        (message,) = told(claims(a=self.DEMANDS))
        assert message == (
            'PR004: prediction "a" is a guard, and "one" has no "subject": name the files that it guards'
        )

    def test_the_spread_of_a_share_follows_from_the_share(self) -> None:
        lines = 'kind = "guard"\nexpected = 0.9\ndetect = 0.5\nstatistic = "proportion"'
        text = (
            claims(head=self.SUBJECT, a=lines).replace('"t_gen"', '"completed"').replace('"< 1 s"', '"> 0.7"')
        )
        assert told(text) == []

    def test_the_spread_of_a_share_of_trials_does_not(self) -> None:
        lines = 'kind = "guard"\nexpected = 0.9\ndetect = 0.5'
        text = claims(head=self.SUBJECT, a=lines).replace('"< 1 s"', '"> 0.7"')
        text = text.replace('quantity = "t_gen"', 'successes = "tokens"\ntrials = "tokens"')
        assert [message[:48] for message in told(text)] == [
            'PR004: prediction "a" is a guard and lacks "cv":'
        ]

    def test_neither_a_formula_nor_a_conjunction_guards(self) -> None:
        rest = (
            '[predictions.f]\nclaim = "c"\nkind = "guard"\ninputs = { g = "one:t_gen" }\nformula = "2 * g"\n'
        )
        rest += 'predicts = "< 1 s"\nfalsifier = "otherwise"\n'
        rest += '[predictions.all]\nclaim = "c"\nkind = "guard"\nall = ["a", "b"]\n'
        messages = told(claims(a="", b="", rest=rest))
        assert [message[:23] for message in messages] == [
            'PR024: prediction "f" i',
            'PR024: prediction "all"',
        ]


class TestFamily:
    HOLM = HEAD.replace('id = "s"', 'id = "s"\nfamily = "holm"')

    def test_a_family_of_claims_is_taken(self) -> None:
        assert told(claims(head=self.HOLM, a="", b="")) == []

    def test_no_member_is_judged_again_or_decided_early(self) -> None:
        head = self.HOLM.replace(
            "[experiments.one]\nrepeats = 7", '[experiments.one]\nsubject = ["x"]\nrepeats = 7'
        )
        (message,) = told(claims(head=head, a=TestGuards.DEMANDS, b=""))
        assert message.startswith(
            'PR024: [study]: family = "holm" can\'t have "a" among its members: a guard'
        )
        head = self.HOLM.replace(
            "[experiments.one]\nrepeats = 7", "[experiments.one]\nrepeats = { looks = [3, 5] }"
        )
        (message,) = told(claims(head=head, a="", b=""))
        assert message.startswith(
            'PR024: [study]: family = "holm" can\'t have "a" and "b" among its members: its'
        )
