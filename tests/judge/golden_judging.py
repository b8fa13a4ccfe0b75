"""From the golden corpus to its records: each study judged as ``--prereg-verify`` judges it, in plain JSON."""

from __future__ import annotations

import hashlib
import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.errors import PreregError
from pytest_prereg.evidence.model import Outcome, RecordedRepeat, Series
from pytest_prereg.judge.chances import plan_of
from pytest_prereg.judge.conjunctions import judge_all
from pytest_prereg.judge.design import check_design
from pytest_prereg.judge.families import holm, smallest_alpha
from pytest_prereg.judge.formulas import judge_formula
from pytest_prereg.judge.hindsight import hindsight
from pytest_prereg.judge.model import Reason
from pytest_prereg.judge.verdicts import is_final, judge
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.judge.model import Alternative, Judgement, Verdict
    from pytest_prereg.registry.model import Experiment, Prediction

FOLDER = Path(__file__).with_name("golden")
CORPUS, RECORDS = FOLDER / "corpus.jsonl", FOLDER / "records.jsonl"

Line = dict[str, Any]


class Plan:
    """A prediction file, ready to be judged by."""

    def __init__(self, text: str) -> None:
        self.study = load_study(Path("predictions.toml"), text=text)
        self.terms = {}
        for name, prediction in self.study.predictions.items():
            unit, scale = registered_unit(self.study, prediction)
            predicts, falsifier = thresholds(prediction, unit)
            self.terms[name] = {"predicts": predicts, "falsifier": falsifier, "scale": scale}

    def judge(self, name: str, study: Line, confidence: float | None = None) -> Judgement:
        """The verdict on a prediction from a study of the corpus."""
        prediction = self.study.predictions[name]
        if prediction.members:
            return self._judge_members(prediction, study, confidence)
        series = {one: series_of(self.study.experiments[one], study) for one in prediction.experiments}
        asked = {
            **self.terms[name],
            "confidence": confidence,
            "obstacles": [(Reason(reason), detail) for reason, detail in study.get("obstacles", ())],
        }
        if prediction.formula is not None:
            return judge_formula(
                prediction, self.study.experiments, series, constants=self.study.constants, **asked
            )
        experiment = self.study.experiments[prediction.experiment]
        return judge(prediction, experiment, series[experiment.id], **asked)

    def is_final(self, name: str, study: Line) -> bool:
        """Whether the series could end here."""
        prediction = self.study.predictions[name]
        experiment = self.study.experiments[prediction.experiment]
        return is_final(prediction, experiment, series_of(experiment, study), **self.terms[name])

    def _judge_members(self, prediction: Prediction, study: Line, confidence: float | None) -> Judgement:
        level = prediction.confidence if confidence is None else confidence
        strict = 1 - (1 - level) / len(prediction.members)
        pairs = [
            (self.judge(one, study, level), self.judge(one, study, strict)) for one in prediction.members
        ]
        return judge_all(prediction, pairs)

    def verdict_at(self, name: str, study: Line, alpha: float) -> Verdict:
        """The verdict at another error level."""
        return self.judge(name, study, 1 - alpha).verdict

    def stops(self, name: str) -> bool:
        """Whether a prediction's series may end early."""
        prediction = self.study.predictions[name]
        return any(self.study.experiments[one].stopping is not None for one in prediction.experiments)


def series_of(experiment: Experiment, study: Line) -> Series:
    """The series of an experiment in a study of the corpus: arms in turn, block by block."""
    values, changes = study["values"][experiment.id], study.get("changed", {})
    repeats = []
    for index in range(1, 1 + max(len(next(iter(metrics.values()))) for metrics in values.values())):
        for arm, metrics in values.items():
            if index > len(next(iter(metrics.values()))):
                continue
            name = "/".join(part for part in (experiment.id, "1", arm, str(index)) if part)
            changed = changes.get(name, {})
            if changed.get("gone"):
                continue
            repeats.append(
                RecordedRepeat(
                    id=name,
                    arm=arm,
                    index=index,
                    block=index,
                    outcome=Outcome(changed.get("outcome", "ok")),
                    values={}
                    if changed.get("lost")
                    else {metric: several[index - 1] for metric, several in metrics.items()},
                    position=len(repeats),
                    machine=changed.get("machine"),
                    instruments=dict.fromkeys(metrics, "clock"),
                    by_author=changed.get("outcome") == "excluded" and not changed.get("by_rule"),
                )
            )
    return Series(
        experiment=experiment.id,
        number=1,
        origin="measured",
        pairing=experiment.pairing,
        planned=experiment.planned,
        repeats=tuple(repeats),
        faults=tuple(fault for fault in study.get("faults", ()) if fault.startswith(f"{experiment.id}/")),
        complete=True,
        source=None,
        seed="",
        predictions={},
        sessions=(),
    )


def corpus() -> list[Line]:
    """The lines of the corpus: a plan, then the studies that go by it."""
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def records(lines: list[Line]) -> Iterator[str]:
    """A line of JSON for each registration, each record, and the family that they make."""
    p: dict[str, float | None] = {}
    plan, label = None, ""
    for line in lines:
        if "text" in line:
            plan, label = Plan(line["text"]), line["plan"]
            yield from (_shown(_registration(plan, label, name)) for name in plan.study.predictions)
            continue
        for name in plan.study.predictions:
            yield _shown(_record(plan, label, name, line))
            if line["study"] == "normal" and not plan.stops(name):
                p[f"{label}/{name}"] = smallest_alpha(partial(plan.verdict_at, name, line))
    yield from (_shown({"p": value, "of": name}) for name, value in p.items())
    yield from (_shown({"level": value, "of": name}) for name, value in holm(p, 0.05).items())


def _registration(plan: Plan, label: str, name: str) -> Line:
    """What registering says: the digest, and the design check with chances at six digits."""
    prediction = plan.study.predictions[name]
    line = {"plan": label, "prediction": name, "digest": registration_digest(plan.study, prediction)}
    if prediction.members or prediction.formula is not None:
        return line
    terms, experiment = plan.terms[name], plan.study.experiments[prediction.experiment]
    report = check_design(prediction, experiment, terms["predicts"], terms["falsifier"], scale=terms["scale"])
    power = report.power and {
        key: f"{getattr(report.power, key):.6g}" for key in ("at", "supported", "refuted")
    }
    return {
        **line,
        "power": power,
        "smallest_n": report.smallest_n,
        "problems": [f"{problem.code}: {problem.message}" for problem in report.problems],
        "notes": report.notes,
    }


def _record(plan: Plan, label: str, name: str, study: Line) -> Line:
    line = {"plan": label, "prediction": name, "study": study["study"]}
    try:
        judgement = plan.judge(name, study)
    except PreregError as error:
        return {**line, "error": str(error)}
    line |= msgspec.to_builtins(judgement)
    if judgement.alternatives:
        line["alternatives"] = [_alternative(each) for each in judgement.alternatives]
    line["repeats"] = hashlib.sha256(",".join(judgement.repeats).encode()).hexdigest()[:8]
    if plan.stops(name):
        line["final"] = plan.is_final(name, study)
    elif (said := _hindsight(plan, name, judgement)) is not None:
        line["hindsight"] = said
    return line


def _alternative(each: Alternative) -> str:
    return f"{' '.join(each.counted)}: {each.verdict} {each.estimate} {each.interval} n {each.n}"


def _hindsight(plan: Plan, name: str, judgement: Judgement) -> str | None:
    prediction, terms = plan.study.predictions[name], plan.terms[name]
    planned = plan_of(prediction, plan.study.experiments[prediction.experiment], terms["scale"])
    if planned is None or prediction.members:
        return None
    found = hindsight(planned, judgement, terms["predicts"], terms["falsifier"])
    return found and f"{found.word} at {found.n}"


def _shown(line: Line) -> str:
    """JSON without what is empty."""
    told = {key: _finite(value) for key, value in line.items() if value not in (None, (), [])}
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
