"""Writes the golden records anew: ``python tests/judge/golden_writing.py``; see CONTRIBUTING.

With ``--draw`` the corpus is made anew first: plans from ``golden_plans``, values from plain ``random``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from golden_judging import CORPUS, RECORDS, corpus, records
from golden_plans import texts

from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.registry.model import Experiment, Study

    Draw = Callable[[Random, int], float]
    """The value of a repeat, by its index from 0."""

SEED = 20260801
SAMPLES = 5


def near_one(random: Random, _: int) -> float:
    """What every arm but the first one has."""
    return random.gauss(1, 0.02)


POPULATIONS: dict[str, Draw] = {
    "normal": near_one,
    "above": lambda random, _: random.gauss(1.2, 0.03),
    "wide": lambda random, _: random.lognormvariate(0, 1),
    "near": lambda random, _: random.gauss(1.05, 0.01),
    "gamma": lambda random, _: random.gammavariate(2, 0.5),
    "tied": lambda random, _: round(random.gauss(1, 0.02), 2),
    "below zero": lambda random, _: -random.lognormvariate(0, 0.5),
    "either sign": lambda random, _: random.gauss(0, 1),
    "tiny": lambda random, _: random.gauss(1, 0.02) * 1e-120,
    "vanishing": lambda random, _: random.gauss(1, 0.02) * 1e-150,
    "huge": lambda random, _: random.gauss(1, 0.02) * 1e130,
    "drifting": lambda random, index: 1.02 + 0.01 * index + random.gauss(0, 0.002),
    "drifting far below": lambda random, index: 0.5 - 0.01 * index + random.gauss(0, 0.002),
    "alike": lambda _random, _: 1.0,
}
"""Values of the first arm, and of the first point of a sweep."""

SHARES: dict[str, Draw] = {
    f"share {k}": lambda random, _, k=k: random.gauss(0.55 + 0.03 * k, 0.03) for k in range(30)
}
"""For counts alone, whose interval rests on parameters of the beta function that are no whole numbers."""

CHANGES: dict[str, dict[str, Any]] = {
    "one invalid": {"changed": {2: {"outcome": "invalid"}}},
    "two excluded": {"changed": {1: {"outcome": "excluded"}, 3: {"outcome": "excluded"}}},
    "one lost": {"changed": {2: {"outcome": "excluded", "lost": True}}},
    "one timeout": {"changed": {3: {"outcome": "timeout", "lost": True}}},
    "many timeouts": {"changed": {index: {"outcome": "timeout", "lost": True} for index in range(1, 6)}},
    "one failure": {"changed": {4: {"outcome": "task-failed", "lost": True}}},
    "two machines": {"changed": {2: {"machine": "one"}, 3: {"machine": "other"}}},
    "faults": {"faults": [1, 1, 2, 3]},
    "broken link": {"obstacles": [["integrity", "a file was changed"], ["required", "p is refuted"]]},
    "unmet": {"obstacles": [["required", "p is refuted"]]},
    "uncalibrated": {"obstacles": [["instrument", "the clock is off"]]},
    "too few": {"kept": 2},
    "stopped": {"kept": 4},
}
"""What happens to repeats of the first arm, whose values are normal; by index."""

COMMON = ("normal", "above", "wide")
IN_TURN = [name for name in (*POPULATIONS, *CHANGES) if name not in COMMON]
EACH = 2
"""How many of the others a plan gets."""
ALWAYS = {
    "coarse clock": ("tied", "alike", "near"),
    "capped": ("gamma", "many timeouts"),
    "bounded": ("gamma", "one lost", "one invalid"),
    "sixty-four": ("tied", "drifting", "drifting far below"),
    "many trials": tuple(SHARES),
    "quantile of seventy-five": ("tied", "drifting", "one timeout"),
}
"""What an odd plan is there for."""


def lines() -> Iterator[dict[str, Any]]:
    """The corpus: each plan, and the studies that go by it."""
    turn = 0
    for plan, text in texts().items():
        yield {"plan": plan, "text": text}
        study = load_study(Path("predictions.toml"), text=text)
        others = [IN_TURN[(turn + k) % len(IN_TURN)] for k in range(EACH)]
        turn += EACH
        for name in dict.fromkeys((*COMMON, *ALWAYS.get(plan, ()), *others)):
            yield _study(plan, study, name)


def _study(plan: str, study: Study, name: str) -> dict[str, Any]:
    random = Random(f"{SEED}: {plan}: {name}")
    draw, more = (POPULATIONS | SHARES).get(name, near_one), dict(CHANGES.get(name, {}))
    kept = more.pop("kept", None)
    values = {
        experiment.id: _values(random, experiment, draw if not place else near_one, plan, kept)
        for place, experiment in enumerate(study.experiments.values())
    }
    first = next(iter(study.experiments.values()))
    if "changed" in more:
        more["changed"] = {_id(first, index): change for index, change in more["changed"].items()}
    if "faults" in more:
        more["faults"] = [_id(first, index) for index in more["faults"]]
    return {"study": name, "values": values, **more}


def _id(experiment: Experiment, index: int) -> str:
    return "/".join(part for part in (experiment.id, "1", next(iter(experiment.arms)), str(index)) if part)


def _values(
    random: Random, experiment: Experiment, draw: Draw, plan: str, kept: int | None
) -> dict[str, dict[str, list[Any]]]:
    """Values by arm and metric."""
    found: dict[str, dict[str, list[Any]]] = {}
    for place, arm in enumerate(experiment.arms.values()):
        factor = _factor(plan, arm.name, arm.params)
        indices = range(min(arm.repeats or 0, kept or 10**6))
        sizes = [factor * (draw if not place else near_one)(random, index) for index in indices]
        found[arm.name] = {
            metric: [_value(random, metric, plan, size) for size in sizes] for metric in experiment.metrics
        }
        if "m" in experiment.metrics:
            found[arm.name] = _trials(random, plan, sizes)
    return found


def _factor(plan: str, arm: str, params: dict[str, Any]) -> float:
    """How much larger an arm is than the first."""
    if "increasing" in plan:
        return {"a": 1.0, "b": 1.3, "c": 2.0}[arm]
    return float(params["size"]) if "exponent" in plan else 1.0


def _value(random: Random, metric: str, plan: str, size: float) -> Any:
    if plan == "samples":
        return [size * random.gauss(1, 0.05) for _ in range(SAMPLES)]
    if plan.startswith("coarse"):
        return round(20 * size) / 20
    return random.gauss(1, 0.01) if metric == "u" else size


def _trials(random: Random, plan: str, sizes: list[float]) -> dict[str, list[Any]]:
    """Successes among trials: rarer where the population's value is larger."""
    trials = [int(10 ** random.uniform(1, 4.5 if plan == "many trials" else 1.5)) for _ in sizes]
    chances = [min(1.0, max(0.0, 1.5 - size)) for size in sizes]
    hits = [round(p * m) for p, m in zip(chances, trials, strict=True)]
    return {"k": hits, "m": trials}


def main() -> None:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw the corpus anew, too")
    if parser.parse_args().draw:
        drawn = (json.dumps(line, ensure_ascii=False) for line in lines())
        CORPUS.write_text("".join(f"{line}\n" for line in drawn), encoding="utf-8")
    RECORDS.write_text("".join(f"{line}\n" for line in records(corpus())), encoding="utf-8")


if __name__ == "__main__":
    main()
