"""From the repeats of several experiments to the inputs of a formula: which values belong together.

Inputs of one repeat, or of one block, are joint: what they share counts. Arms without blocks, and different
experiments, are independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pytest_prereg.judge.question import ask, differ_in_hardware
from pytest_prereg.judge.samples import SET_ASIDE, Sample, in_blocks, read_sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.judge.exclusions import Choice
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.registry.model import Experiment, Input, Prediction
    from pytest_prereg.registry.regions import Region

Row = dict[str, "Reading"]
"""The readings of one repeat, or of one block, by the input's name."""


class Part(NamedTuple):
    """What a formula takes from one experiment."""

    experiment: Experiment
    series: Series
    questions: dict[str, Question]
    """What is asked of one arm, by the input's name."""
    repeats: list[RecordedRepeat]
    """All settled repeats of the arms used, in run order."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms used, sorted."""
        return tuple(sorted({question.arms[0] for question in self.questions.values()}))

    @property
    def paired(self) -> bool:
        """Whether repeats of several arms are read block by block."""
        return len(self.arms) > 1 and self.experiment.pairing == "block"

    @property
    def question(self) -> Question:
        """What all inputs ask of the experiment together, as far as its arms and metrics go."""
        questions = list(self.questions.values())
        return replace(
            questions[0],
            arms=self.arms,
            paired=self.paired,
            treated=differ_in_hardware(self.experiment, self.arms),
            metrics=[metric for question in questions for metric in question.metrics],
            bounds={name: ends for question in questions for name, ends in question.bounds.items()},
        )

    @property
    def planned(self) -> int | None:
        """Repeats registered, the smallest arm's."""
        if self.series.planned is None:
            return None
        return min(
            (self.series.planned[arm] for arm in self.arms if arm in self.series.planned), default=None
        )


class Group(NamedTuple):
    """Values that are independent of those of other groups."""

    experiment: str
    noun: str
    """What a row is: a repeat or a block."""
    names: tuple[str, ...]
    rows: list[Row]

    def column(self, name: str) -> list[Reading]:
        """The readings of one input, in run order."""
        return [row[name] for row in self.rows]

    def readings(self) -> Iterator[Reading]:
        """The readings of all inputs, one input after the other."""
        for name in self.names:
            yield from self.column(name)


def parts_of(
    prediction: Prediction,
    inputs: Sequence[Input],
    experiments: Mapping[str, Experiment],
    series: Mapping[str, Series],
    *,
    predicts: Region,
    falsifier: Region,
    constants: Mapping[str, float],
    confidence: float | None,
) -> list[Part]:
    """What the measured ``inputs`` take from each experiment, sorted by its id."""
    parts = []
    for name in sorted({each.experiment for each in inputs if each.experiment is not None}):
        questions = {
            each.name: ask(
                _mean_of(prediction, each),
                experiments[name],
                predicts=predicts,
                falsifier=falsifier,
                scale=1.0,
                constants=constants,
                confidence=confidence,
            )
            for each in inputs
            if each.experiment == name
        }
        part = Part(experiments[name], series[name], questions, [])
        part.repeats.extend(_repeats_of(part))
        parts.append(part)
    return parts


def read_part(part: Part, choice: Choice) -> tuple[Sample, list[Group]]:
    """The repeats of one experiment, and the groups that those kept and a ``choice`` of the others make.

    A repeat that was set aside has a value if each input of its arm has one there.

    Raises:
        JudgeError: An input has no finite value in a repeat that counts, or two repeats claim one place in a
            block.
    """
    rows: dict[str, Row] = {}
    whole = Sample(kept=[], set_aside=[], without_value=[])
    for arm in part.arms:
        _read_arm(part, arm, rows, whole)
    chosen = frozenset(choice)
    counted = [*whole.kept, *(reading for reading in whole.set_aside if reading.repeat.id in chosen)]
    counted.sort(key=lambda reading: reading.repeat.position)
    return whole, list(_groups(part, rows, counted))


def _mean_of(prediction: Prediction, each: Input) -> Prediction:
    quantity = each.quantity or prediction.quantity
    return replace(prediction, statistic="mean", formula=None, quantity=quantity, arms=(each.arm,))


def _repeats_of(part: Part) -> list[RecordedRepeat]:
    planned = part.series.planned or {}
    repeats = [
        repeat
        for repeat in part.series.repeats
        if repeat.arm in part.arms and repeat.index <= planned.get(repeat.arm, repeat.index)
    ]
    return sorted(repeats, key=lambda repeat: repeat.position)


def _read_arm(part: Part, arm: str, rows: dict[str, Row], whole: Sample) -> None:
    """Add the readings of one arm: to ``rows`` by repeat, and one for each repeat to ``whole``."""
    questions = {name: one for name, one in part.questions.items() if one.arms == (arm,)}
    repeats = [repeat for repeat in part.repeats if repeat.arm == arm]
    samples = {name: read_sample(question, repeats) for name, question in questions.items()}
    for name, sample in samples.items():
        for reading in (*sample.kept, *sample.set_aside):
            rows.setdefault(reading.repeat.id, {})[name] = reading
    for repeat in repeats:
        row = rows.get(repeat.id, {})
        if len(row) < len(questions):
            if repeat.outcome in SET_ASIDE:
                whole.without_value.append(repeat)
            continue
        most = max(row.values(), key=lambda reading: reading.cut)
        (whole.set_aside if repeat.outcome in SET_ASIDE else whole.kept).append(most)


def _groups(part: Part, rows: Mapping[str, Row], counted: list[Reading]) -> Iterator[Group]:
    name, noun = part.experiment.id, "block" if part.paired else "repeat"
    if part.paired:
        blocks = in_blocks(counted, part.arms)
        joint = [
            {key: one for reading in block for key, one in rows[reading.repeat.id].items()}
            for block in blocks
        ]
        yield Group(name, noun, tuple(part.questions), joint)
        return
    for arm in part.arms:
        names = tuple(key for key, question in part.questions.items() if question.arms == (arm,))
        own = [rows[reading.repeat.id] for reading in counted if reading.repeat.arm == arm]
        yield Group(name, noun, names, own)
