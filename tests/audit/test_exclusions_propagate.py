"""Excluding a repeat changes or voids every record that used it, and no other: over random studies.

``--hypothesis-profile=thorough`` tries ten times as many.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from written_studies import WrittenStudy, assessments, ok

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.dependencies import rests_on
from pytest_prereg.audit.setting_aside import effect_of, exclude
from pytest_prereg.audit.standing import read_arms
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.lock import write_lock

if TYPE_CHECKING:
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.registry.model import Experiment, Study

STUDIES = settings().max_examples // 4
TRIED = 2
"""Repeats that are excluded of each study, one at a time."""
SOLO = [
    'quantity = "t"',
    'quantity = "t"\nstatistic = "geometric-mean"',
    'quantity = "t"\nstatistic = "median"',
    'quantity = "t"\nstatistic = "quantile(0.7)"',
    'quantity = "t"\nstatistic = "sd"',
    'quantity = "t / u"',
    'quantity = "t < 1.02"\nstatistic = "proportion"',
    'numerator = "t"\ndenominator = "t + v"',
]
PAIR = [
    'quantity = "t"\ncontrast = "a - b"',
    'quantity = "t"\ncontrast = "a / b"',
    'quantity = "t"\narm = "a"',
]
EDGES = [
    'predicts = "<= {0}{1}"\nfalsifier = "> {0}{1}"',
    'predicts = ">= {0}{1}"\nfalsifier = "< {0}{1}"',
]


class Record(NamedTuple):
    """What of a verdict can be cited, or is in the lock."""

    verdict: Verdict
    reason: Reason | None
    estimate: float | None
    interval: tuple[float, float] | None
    n: int
    digest: str | None


def record(assessment: Assessment) -> Record:
    judgement = assessment.judgement
    return Record(
        judgement.verdict,
        judgement.reason,
        judgement.estimate,
        judgement.interval,
        judgement.n,
        assessment.evidence,
    )


def drawn(random: Random) -> str:
    """A prediction file: experiments of one arm or two, and predictions on them, and on each other."""
    family = random.choice(["", 'family = "holm"\n'])
    parts = [f'[study]\nid = "random"\n{family}']
    names, claims, inputs = [], [], []
    for number in range(random.choice([1, 2, 2, 3])):
        experiment = f"e{number}"
        two = random.choice([True, False])
        pairing = random.choice(["block", "none"]) if two else "none"
        parts.append(
            f'[experiments.{experiment}]\nrepeats = {random.randint(6, 9)}\npairing = "{pairing}"\n'
            'metrics = { t = "s", u = "1", v = "s" }\n'
        )
        if two:
            parts.append(
                f"[experiments.{experiment}.arms.a]\nx = 1\n[experiments.{experiment}.arms.b]\nx = 2\n"
            )
        inputs.append(f"{experiment}[a]:t" if two else f"{experiment}:t")
        chosen = random.sample(PAIR if two else SOLO, random.randint(1, 3))
        claims += [f'experiment = "{experiment}"\n{which}\n{edge(random, which)}' for which in chosen]
    for claim in claims:
        name = f"p{len(names)}"
        needs = f'requires = ["{random.choice(names)}"]\n' if names and random.random() < 0.15 else ""
        parts.append(f'[predictions.{name}]\nclaim = "x"\n{claim}{needs}')
        names.append(name)
    if len(inputs) > 1:
        parts.append(
            f'[predictions.formula]\nclaim = "x"\nformula = "x / y"\n'
            f'inputs = {{ x = "{inputs[0]}", y = "{inputs[1]}" }}\n{edge(random, "/")}'
        )
        names.append("formula")
    if len(names) > 2:
        members = ", ".join(f'"{one}"' for one in random.sample(names, 2))
        parts.append(f'[predictions.together]\nclaim = "x"\nall = [{members}]\n')
    return "\n".join(parts)


def edge(random: Random, which: str) -> str:
    shares = ("/", "proportion", "numerator")
    unit = "" if any(word in which for word in shares) else " s"
    near = {"a - b": 0.02, "sd": 0.05, "numerator": 0.5, "proportion": 0.4}
    at = next((value for word, value in near.items() if word in which), 1.0)
    return random.choice(EDGES).format(round(at * random.choice([0.9, 1.0, 1.01, 1.2]), 3), unit) + "\n"


def measure(random: Random, made: WrittenStudy) -> None:
    """Evidence of each experiment, with a replication and repeats that were invalidated here and there."""
    for name, experiment in made.study.experiments.items():
        for series in range(1, random.choice([2, 2, 3])):
            made.session(name, {slot: ended(random) for slot in slots(experiment)}, series=series)


def slots(experiment: Experiment) -> list[tuple[str, int]]:
    return [(arm, at) for arm, count in experiment.planned.items() for at in range(1, count + 1)]


def ended(random: Random):
    values = {"t": random.gauss(1, 0.05), "u": random.gauss(1, 0.02), "v": random.gauss(1, 0.05)}
    if random.random() < 0.03:
        return [(Outcome.INVALID, values)]
    lost = [(Outcome.INFRASTRUCTURE, {})] if random.random() < 0.03 else []
    return [*lost, *ok(**values)]


def reads(state: StudyState, name: str, repeat: str) -> bool:
    """Whether a prediction reads the arm of a repeat, in the series that decides it."""
    experiment, series, *arm, _ = repeat.split("/")
    prediction, basis = state.study.predictions[name], state.bases[name]
    return (
        experiment in prediction.experiments
        and series == str(basis[experiment].number)
        and (arm[0] if arm else "") in read_arms(state.study, prediction, experiment)
    )


def rests(study: Study, name: str) -> set[str]:
    """All that has a say in a prediction."""
    found: set[str] = set()
    open_ = [name]
    while open_:
        for below in rests_on(study, study.predictions[open_.pop()]):
            if below not in found:
                found.add(below)
                open_.append(below)
    return found


@settings(max_examples=STUDIES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32))
def test_an_exclusion_changes_or_voids_every_record_that_used_the_repeat_and_no_other(seed):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        made = WrittenStudy(Path(folder), drawn(random))
        measure(random, made)
        state = made.record()
        before = assessments(state)
        assert not [problem for one in before.values() for problem in one.problems]
        every = [one for several in state.series.values() for series in several for one in series.repeats]
        for repeat in random.sample([one.id for one in every], min(TRIED, len(every))):
            check(state, before, repeat)


def check(state: StudyState, before: dict[str, Assessment], repeat: str) -> None:
    lock = exclude(state, repeat, "the fan stood still", "tool")
    write_lock(state.study.lock_path, lock)
    after_state = StudyState(state.study)
    after = assessments(after_state)
    changed = {effect.prediction for effect in effect_of(state, after_state)}
    for name, was in before.items():
        now = after[name]
        if repeat in was.judgement.repeats:
            assert reads(state, name, repeat)
            assert now.evidence != was.evidence
            assert repeat not in now.judgement.repeats
            (problem,) = [one for one in now.problems if one.code == "PR211"]
            assert repeat in problem.message
            assert decides_no_more(was.judgement, now.judgement)
        elif any(
            before[one].judgement.verdict is not after[one].judgement.verdict
            for one in rests(state.study, name)
        ):
            assert now.evidence == was.evidence
        else:
            assert record(now) == record(was), name
            assert name not in changed
            assert not now.problems
            assert now.flags == was.flags or repeat in now.judgement.set_aside
    write_lock(state.study.lock_path, state.lock)


def decides_no_more(was, now) -> bool:
    """Whether a verdict is what it was with everything counted, or none."""
    return now.verdict in (was.verdict, Verdict.INCONCLUSIVE)
