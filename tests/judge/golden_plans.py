"""Plans of the golden corpus: every row of ``RULES`` under every pairing and stopping rule, and some oddities.

A plan is a prediction file; what is drawn for it is in ``golden_drawing``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_prereg.registry.estimands import Estimand, combinations

HEAD = '[study]\nid = "golden"\n'
MS = "ms"
ONLY = ""
SWEEP = "sweep = { size = [1, 2, 4] }\n"


@dataclass(frozen=True, kw_only=True)
class Row:
    """How an estimand is written; its value is near 1 in the first population, and larger in the second."""

    prediction: str
    edge: float
    """In the unit of the metric; predicted below it, unless ``above``."""
    above: bool = False
    unit: str = ""
    """``ms`` where the estimate has the unit of the metric, which every other plan is not shown in."""
    metrics: str = 't = "ms"'
    arms: dict[str, float] = field(default_factory=lambda: {ONLY: 1.0})
    """Factor of each arm."""
    levels: bool = False
    """Whether arms set ``size`` to 1, 2, 4."""
    swept: bool = False
    spread: str = "cv = 0.03"
    sizes: tuple[int, ...] = (3, 5, 7)
    """Looks; the last is all repeats."""


PAIR = {"a": 1.0, "b": 1.0}
THREE = {"a": 1.0, "b": 1.0, "c": 1.0}
ONE_ARM = 'quantity = "t"\nstatistic = "{}"'
CONTRAST = 'quantity = "t"\ncontrast = "{}"'
REDUCED = 'quantity = "t"\nover = "size"\nstatistic = "{}"'

ROWS = {
    Estimand("mean"): Row(prediction=ONE_ARM.format("mean"), edge=1.05, unit=MS),
    Estimand("geometric-mean"): Row(prediction=ONE_ARM.format("geometric-mean"), edge=1.05, unit=MS),
    Estimand("median"): Row(prediction=ONE_ARM.format("median"), edge=1.05, unit=MS, sizes=(6, 9, 12)),
    Estimand("quantile"): Row(prediction=ONE_ARM.format("quantile(0.7)"), edge=1.08, unit=MS, sizes=(12, 16)),
    Estimand("proportion"): Row(
        prediction='quantity = "t < 1.1"\nstatistic = "proportion"', edge=0.5, above=True, spread=""
    ),
    Estimand("sd"): Row(prediction=ONE_ARM.format("sd"), edge=0.06, unit=MS, spread=""),
    Estimand("ratio-of-sums"): Row(
        prediction='numerator = "t"\ndenominator = "t + u"', edge=0.52, metrics='t = "ms", u = "ms"'
    ),
    Estimand("mean", "-"): Row(
        prediction=CONTRAST.format("a - b"), edge=0.06, unit=MS, arms=PAIR, spread="sd = 0.03"
    ),
    Estimand("geometric-mean", "/"): Row(prediction=CONTRAST.format("a / b"), edge=1.05, arms=PAIR),
    Estimand("mean", "/"): Row(
        prediction=CONTRAST.format("a / b") + '\nstatistic = "mean"', edge=1.05, arms=PAIR
    ),
    Estimand("mean", "plateau"): Row(
        prediction=CONTRAST.format("plateau(a, b, c)"), edge=0.1, unit=MS, arms=THREE, spread="sd = 0.03"
    ),
    Estimand("mean", "increasing"): Row(
        prediction=CONTRAST.format("increasing(a, b, c)"),
        edge=0.2,
        above=True,
        unit=MS,
        arms={"a": 1.0, "b": 1.3, "c": 2.0},
        spread="sd = 0.03",
    ),
    Estimand("mean", "exponent"): Row(
        prediction=CONTRAST.format("exponent(size)"),
        edge=0.95,
        above=True,
        arms={"a": 1.0, "b": 2.0, "c": 4.0},
        levels=True,
        spread="sd = 0.02",
    ),
    Estimand("geometric-mean", None, "geometric-mean"): Row(
        prediction=REDUCED.format("geometric-mean"), edge=1.03, unit=MS, swept=True
    ),
    Estimand("geometric-mean", "/", "geometric-mean"): Row(
        prediction=f'{REDUCED.format("geometric-mean")}\ncontrast = "a / b"', edge=1.03, arms=PAIR, swept=True
    ),
    Estimand("mean", None, "min"): Row(prediction=REDUCED.format("min"), edge=0.99, unit=MS, swept=True),
    Estimand("mean", "-", "min"): Row(
        prediction=f'{REDUCED.format("min")}\ncontrast = "a - b"',
        edge=0.01,
        unit=MS,
        arms=PAIR,
        swept=True,
        spread="sd = 0.03",
    ),
    Estimand("geometric-mean", "/", "min"): Row(
        prediction=f'{REDUCED.format("min")}\ncontrast = "a / b"', edge=0.99, arms=PAIR, swept=True
    ),
    Estimand("all", None, "all"): Row(prediction=REDUCED.format("all"), edge=1.07, unit=MS, swept=True),
    Estimand("all", "-", "all"): Row(
        prediction=f'{REDUCED.format("all")}\ncontrast = "a - b"',
        edge=0.07,
        unit=MS,
        arms=PAIR,
        swept=True,
        spread="sd = 0.03",
    ),
    Estimand("all", "/", "all"): Row(
        prediction=f'{REDUCED.format("all")}\ncontrast = "a / b"', edge=1.07, arms=PAIR, swept=True
    ),
}
"""How each estimand is asked about; a formula and a conjunction are made of others, below."""

FORMULA = """
[constants.limit]
value = 2.0
unit = "ms"
interval = [1.96, 2.04]
source = "a data sheet"

[experiments.e]
repeats = 7
pairing = "{pairing}"
metrics = {{ t = "ms" }}
arms = {{ a = {{}}, b = {{}} }}

[experiments.f]
repeats = 5
metrics = {{ t = "ms" }}

[predictions.quotient]
claim = "Within two experiments."
inputs = {{ x = "e[a]:t", y = "e[b]:t", z = "f:t" }}
formula = "(x + y) / z"
predicts = "<= 2.1"
falsifier = "> 2.1"

[predictions.curve]
claim = "With a constant that is known to an interval."
inputs = {{ x = "e[a]:t", y = "e[b]:t", c = "constants:limit" }}
formula = "log(c / x) + sqrt(y / x) - 0.5 * (x / y) ** 1.5"
predicts = ">= 1.1"
falsifier = "< 1.1"

[predictions.linear]
claim = "Of one experiment alone."
inputs = {{ x = "e[a]:t", y = "e[b]:t" }}
formula = "x - 2 * y"
predicts = "<= -0.9 ms"
falsifier = "> -0.9 ms"
"""
ALL = """
[experiments.e]
repeats = 7
pairing = "{pairing}"
metrics = {{ t = "ms" }}
arms = {{ a = {{}}, b = {{}} }}

[predictions.low]
claim = "An arm alone."
experiment = "e"
arm = "a"
quantity = "t"
predicts = "<= 1.05 ms"
falsifier = "> 1.05 ms"

[predictions.alike]
claim = "Both arms."
experiment = "e"
contrast = "a / b"
quantity = "t"
predicts = "<= 1.06"
falsifier = "> 1.06"

[predictions.both]
claim = "Both claims."
all = ["low", "alike"]
"""
MADE = {Estimand("formula"): FORMULA, Estimand("all"): ALL}


def _odd(experiment: str, prediction: str, *regions: str, head: str = HEAD) -> str:
    """A prediction file with one prediction; of two ``regions`` the second falsifies."""
    predicts, falsifier = regions
    return (
        f'{head}[experiments.e]\n{experiment}\n[predictions.p]\nclaim = "c"\nexperiment = "e"\n{prediction}\n'
        f'predicts = "{predicts}"\nfalsifier = "{falsifier}"\n'
    )


MEAN = ONE_ARM.format("mean")
NO_BLOCKS = 'repeats = 7\npairing = "none"\n'
COUNTS = 'metrics = { k = { unit = "1", exact = true }, m = { unit = "1", exact = true } }'
COARSE = 'metrics = { t = { unit = "ms", resolution = 0.05 } }'
PLAIN = 'metrics = { t = "ms" }'
POWER = "\nexpected = 1.0\ncv = 0.1"

ODD = {
    "fifty-nine, at 99 %": _odd(
        f"repeats = 59\n{PLAIN}", MEAN + POWER, "<= 1.05 ms", "> 1.05 ms", head=f"{HEAD}confidence = 0.99\n"
    ),
    "sixty-four": _odd(f"repeats = 64\n{PLAIN}", MEAN + POWER, "<= 1.05 ms", "> 1.05 ms"),
    "quantile of seventy-five": _odd(
        f"repeats = 75\n{PLAIN}", ONE_ARM.format("quantile(0.95)") + POWER, "<= 1.2 ms", "> 1.2 ms"
    ),
    "spread of thirty": _odd(
        f"repeats = 30\n{PLAIN}", ONE_ARM.format("sd") + "\nexpected = 0.02", "<= 0.04 ms", "> 0.04 ms"
    ),
    "unequal arms": _odd(
        f"{NO_BLOCKS}arms = {{ a = {{}}, b = {{ repeats = 12 }} }}\n{PLAIN}",
        CONTRAST.format("a - b") + "\nexpected = 0.0\nsd = 0.03",
        "<= 0.06 ms",
        "> 0.06 ms",
    ),
    "trials": _odd(f"repeats = 6\n{COUNTS}", 'successes = "k"\ntrials = "m"', ">= 0.5", "< 0.5"),
    "many trials": _odd(f"repeats = 6\n{COUNTS}", 'successes = "k"\ntrials = "m"', ">= 0.5", "< 0.5"),
    "trials, in per cent, with looks": _odd(
        f"repeats = {{ looks = [3, 6] }}\n{COUNTS}", 'successes = "k"\ntrials = "m"', ">= 50 %", "< 50 %"
    ),
    "coarse clock": _odd(f"repeats = 7\n{COARSE}", MEAN, "<= 1.1 ms", "> 1.1 ms"),
    "coarse ratio": _odd(
        f"{NO_BLOCKS}arms = {{ a = {{}}, b = {{}} }}\n{COARSE}", CONTRAST.format("a / b"), "<= 1.1", "> 1.1"
    ),
    "coarse plateau": _odd(
        f"{NO_BLOCKS}arms = {{ a = {{}}, b = {{}}, c = {{}} }}\n{COARSE}",
        CONTRAST.format("plateau(a, b, c)"),
        "<= 0.1 ms",
        "> 0.1 ms",
    ),
    "capped": _odd(
        'repeats = 7\nmetrics = { t = { unit = "ms", cap = 1.3 } }', MEAN, "<= 1.05 ms", "> 1.05 ms"
    ),
    "bounded": _odd(
        f"repeats = 7\nmax-excluded = 1\nbounds = {{ t = [0.5, 1.3] }}\n{PLAIN}",
        MEAN,
        "<= 1.05 ms",
        "> 1.05 ms",
    ),
    "samples": _odd(
        f"repeats = 7\n{PLAIN}",
        'quantity = "quantile(t, 0.9) / median(t) + std(t) / mean(t) - share(t > 1)"',
        "<= 1.05",
        "> 1.05",
    ),
    "for-each": _odd(
        f"repeats = 7\n{SWEEP}arms = {{ a = {{}}, b = {{}} }}\n{PLAIN}",
        CONTRAST.format("a / b") + '\nfor-each = "size"',
        "<= 1.05",
        "> 1.05",
    ),
}
"""Plans with something of their own, by name."""


def texts() -> dict[str, str]:
    """Every plan's prediction file, by name."""
    found = {}
    accepted = (each for each in combinations() if each.refusal is None)
    for number, (estimand, pairing, early, _) in enumerate(accepted):
        name = ", ".join(filter(None, (*estimand, pairing, early)))
        if estimand in MADE:
            found[name] = HEAD + MADE[estimand].format(pairing=pairing)
        else:
            found[name] = _text(ROWS[estimand], pairing, early, shown_in_seconds=number % 2 == 1)
    return found | ODD


def _text(row: Row, pairing: str, early: str | None, *, shown_in_seconds: bool) -> str:
    repeats = {
        None: str(row.sizes[-1]),
        "looks": f"{{ looks = {list(row.sizes)} }}",
        "anytime": '{ max = 9, stopping = "anytime" }',
    }[early]
    factor, unit = (0.001, " s") if row.unit and shown_in_seconds else (1.0, f" {row.unit}".rstrip())
    edge = f"{row.edge * factor:.6g}{unit}"
    predicts, falsifier = (f">= {edge}", f"< {edge}") if row.above else (f"<= {edge}", f"> {edge}")
    expected = row.edge + 0.05 * (1 if row.above else -1) * (row.edge if row.spread.startswith("cv") else 1)
    spread = row.spread if not row.spread.startswith("sd") else f"sd = {float(row.spread[5:]) * factor:.6g}"
    return (
        f'{HEAD}[experiments.e]\nrepeats = {repeats}\npairing = "{pairing}"\nmetrics = {{ {row.metrics} }}\n'
        f"{SWEEP if row.swept else ''}{_arms(row)}"
        f'[predictions.p]\nclaim = "c"\nexperiment = "e"\n{row.prediction}\n'
        f'predicts = "{predicts}"\nfalsifier = "{falsifier}"\nexpected = {expected * factor:.6g}\n{spread}\n'
    )


def _arms(row: Row) -> str:
    if ONLY in row.arms:
        return ""
    levels = dict(zip(row.arms, (1, 2, 4), strict=False))
    tables = (f"{name} = {{ {f'size = {levels[name]}' if row.levels else ''} }}" for name in row.arms)
    return f"arms = {{ {', '.join(tables)} }}\n"
