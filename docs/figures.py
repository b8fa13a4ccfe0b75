"""The figures of the study's page, drawn from the verdicts that ``predictions.lock`` records.

``python docs/figures.py`` draws those whose numbers have changed (it needs the extra ``report``); with
``--check`` it draws nothing, and exits 1 if one of them shows other numbers than are recorded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_prereg.measure.workloads.barrier_models import idle_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "figures"
MARK = "numbers sha256:"
BLUE, RED, GREY, INK = "#0b6fa4", "#c0392b", "#8a8f98", "#1c1f23"
COLOURS = {"supported": BLUE, "refuted": RED, "inconclusive": GREY}
BUSY, REWARD, DEADLINE, COMPLETIONS = 24.67, 2.0, 30.0, 128


class Measured(NamedTuple):
    """What the lock records of a prediction."""

    estimate: float
    low: float
    high: float
    verdict: str


class Figure(NamedTuple):
    """A figure: what it is drawn from, and how."""

    name: str
    predictions: tuple[str, ...]
    """Their recorded numbers are all that it shows of measurements."""
    draw: Callable[[Any, dict[str, Measured]], None]
    size: tuple[float, float] = (7.2, 3.6)


def recorded() -> dict[str, Measured]:
    """Every prediction with a recorded estimate."""
    lock = tomllib.loads((ROOT / "predictions.lock").read_text("utf-8"))
    return {
        name: Measured(entry["estimate"], *entry["interval"], entry["verdict"])
        for name, entry in lock["predictions"].items()
        if "estimate" in entry and "interval" in entry
    }


TAIL = {
    "floor-is-7-5-percent": 0.0,
    "idle-at-a-quarter-percent": 0.25,
    "idle-at-half-a-percent": 0.5,
    "idle-at-one-percent": 1.0,
    "idle-at-two-percent": 2.0,
    "idle-at-five-percent": 5.0,
    "idle-at-ten-percent": 10.0,
}
"""Predictions of the idle share, with the rate of timeouts in per cent."""


def _tail(axes: Any, of: dict[str, Measured]) -> None:
    grid = np.concatenate([np.linspace(0, 1.5, 76), np.linspace(1.6, 10.5, 90)])
    law = {"busy": BUSY, "reward": REWARD, "deadline": DEADLINE}
    shares = [idle_shares(rate / 100, COMPLETIONS, **law) for rate in grid]
    axes.plot(grid, [100 * one.ratio_of_sums for one in shares], color=INK, lw=1.3, label="model: a run")
    axes.plot(
        grid,
        [100 * one.median_step for one in shares],
        color=GREY,
        lw=1.3,
        ls=(0, (4, 3)),
        label="model: its median step",
    )
    for number, (name, rate) in enumerate(TAIL.items()):
        label = "measured, 95 % interval, n = 7" if number == 0 else None
        _point(axes, rate, of[name], scale=100, label=label)
    axes.set_xlabel(
        "completions that run into the 30 s timeout, in per cent (the median reward stays at 2 s)"
    )
    axes.set_ylabel("idle share of the run, %")
    axes.set_ylim(0, 65)
    axes.set_xlim(-0.3, 10.5)
    axes.legend(frameon=False, loc="lower right")


def _point(axes: Any, at: float, one: Measured, *, scale: float = 1, label: str | None = None) -> None:
    below, above = scale * (one.estimate - one.low), scale * (one.high - one.estimate)
    axes.errorbar(
        at,
        scale * one.estimate,
        yerr=[[below], [above]],
        fmt="o",
        ms=4.5,
        capsize=3,
        color=COLOURS[one.verdict],
        label=label,
        zorder=3,
    )


def _moved(one: Measured, by: float) -> Measured:
    return Measured(one.estimate + by, one.low + by, one.high + by, one.verdict)


def _bars(
    names: Sequence[tuple[str, str]], xlabel: str, *, line: float | None = None, scale: float = 1
) -> Callable[[Any, dict[str, Measured]], None]:
    """Draw an estimate with its interval in each row: text, prediction."""

    def draw(axes: Any, of: dict[str, Measured]) -> None:
        for row, (_, name) in enumerate(names):
            one = of[name]
            if name in BESIDE_NAIVE:
                one = _moved(one, of["naive-holds-three-copies"].estimate)
            low, high = scale * (one.estimate - one.low), scale * (one.high - one.estimate)
            colour = COLOURS[one.verdict]
            axes.errorbar(
                scale * one.estimate, row, xerr=[[low], [high]], fmt="o", ms=5, capsize=3, color=colour
            )
        if line is not None:
            axes.axvline(line, color=GREY, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(names)), [text for text, _ in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(xlabel)
        axes.grid(axis="x", color="#e4e6ea", lw=0.8)
        axes.set_axisbelow(True)

    return draw


MEMORY = (
    ("naive", "naive-holds-three-copies"),
    ("gather − logsumexp", "gathering-costs-a-copy"),
    ("row by row", "rows-save-nothing-when-training"),
    ("chunks, computed again", "chunks-save-memory"),
    ("fused", "fused-needs-a-tenth"),
)
BESIDE_NAIVE = ("gathering-costs-a-copy", "rows-save-nothing-when-training")
"""What is recorded of them is by how much they differ from the naive form."""
BATCHES = (
    ("32 against 128, at 1 %: wait", "smaller-batches-wait-longer-at-one-percent"),
    ("32 against 128, at 1 %: all", "smaller-batches-make-a-completion-cheaper"),
    ("32 against 128, at 10 %: wait", "smaller-batches-wait-fourfold"),
    ("32 against 128, at 10 %: all", "smaller-batches-cost-twice-as-much"),
    ("8 against 128, at 10 %: all", "the-smallest-batches-cost-four-times-as-much"),
)
REMEDIES = (
    ("groups of 8 / batch", "finer-barriers-help-in-longer-runs"),
    ("one step ahead / batch", "one-step-ahead-saves-a-quarter"),
    ("two steps ahead / batch", "two-steps-ahead-save-a-third"),
    ("two ahead / one ahead", "two-steps-ahead-beat-one"),
    ("one ahead / groups of 8", "ahead-beats-finer"),
)
INSTRUMENTS = (
    ("duty 10 %, 0.5 ms", "operators-read-10-percent"),
    ("duty 30 %, 0.5 ms", "operators-read-30-percent"),
    ("duty 50 %, 0.5 ms", "operators-read-50-percent"),
    ("duty 90 %, 0.5 ms", "operators-read-90-percent"),
    ("duty 50 %, 0.05 ms", "short-kernels-read-low"),
    ("duty 20 %, 1 ms", "operators-of-1-ms-read-20-percent"),
    ("duty 50 %, 1 ms", "operators-of-1-ms-read-50-percent"),
    ("duty 80 %, 1 ms", "operators-of-1-ms-read-80-percent"),
    ("one core burns", "load-of-one"),
    ("two cores burn", "load-of-two"),
)


def _beliefs(axes: Any, of: dict[str, Measured]) -> None:
    """One dot for each measured claim, over the credence that it was registered with."""
    study = tomllib.loads((ROOT / "predictions.toml").read_text("utf-8"))["predictions"]
    rows = [
        (study[name]["credence"], of[name].verdict)
        for name in sorted(of)
        if study.get(name, {}).get("basis", "measured") == "measured" and "credence" in study.get(name, {})
    ]
    heights: Counter[int] = Counter()
    for verdict, colour in COLOURS.items():
        places = []
        for credence, found in rows:
            if found == verdict:
                bin_ = round(credence * 20)
                heights[bin_] += 1
                places.append((bin_ / 20, heights[bin_]))
        text = f"{verdict}: {len(places)}"
        if places:
            axes.scatter(
                *zip(*places, strict=True), s=26, color=colour, label=text, edgecolors="white", lw=0.4
            )
    axes.set_xlabel("probability that the author gave it to be supported, if it is decided")
    axes.set_yticks([])
    axes.set_ylim(0, max(heights.values()) + 2)
    axes.legend(frameon=False, loc="upper center")


def figures(of: dict[str, Measured]) -> list[Figure]:
    """All figures, in the order of the page."""

    def rows(name: str, table: Sequence[tuple[str, str]], xlabel: str, **how: Any) -> Figure:
        height = 0.9 + 0.36 * len(table)
        return Figure(name, tuple(key for _, key in table), _bars(table, xlabel, **how), (7.2, height))

    return [
        Figure("idle-share", tuple(TAIL), _tail),
        rows("batches", BATCHES, "time of a completion in small batches, relative to batches of 128", line=1),
        rows("remedies", REMEDIES, "ratio of step times, at one timeout in a hundred", line=1),
        rows(
            "log-softmax",
            MEMORY,
            "memory at the peak, backward pass included, in copies of the logits",
            line=0,
        ),
        rows("instruments", INSTRUMENTS, "reading less what is known, in points", line=0, scale=100),
        Figure("beliefs", tuple(sorted(of)), _beliefs, (7.2, 3.4)),
    ]


def numbers(figure: Figure, of: dict[str, Measured]) -> str:
    """A digest over all that a figure shows of measurements."""
    shown = {name: of[name] for name in figure.predictions if name in of}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def drawn_from(figure: Figure) -> str | None:
    """That digest, as the figure has it that is there."""
    file = FOLDER / f"{figure.name}.svg"
    text = file.read_text("utf-8") if file.is_file() else ""
    return text.partition(MARK)[2][:64] or None


def draw(figure: Figure, of: dict[str, Measured]) -> None:
    """Write a figure as SVG, which says what numbers it shows."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    style = {
        "svg.hashsalt": "prereg",
        "font.size": 9.5,
        "font.family": "DejaVu Sans",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": INK,
        "axes.labelcolor": INK,
    }
    with plt.rc_context(style):
        canvas, axes = plt.subplots(figsize=figure.size, layout="constrained")
        figure.draw(axes, of)
        FOLDER.mkdir(exist_ok=True)
        said = {"Date": None, "Creator": None, "Description": f"{MARK}{numbers(figure, of)}"}
        canvas.savefig(FOLDER / f"{figure.name}.svg", metadata=said, facecolor="white")
        plt.close(canvas)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what has changed, or say what has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="draw nothing; fail if a figure is out of date")
    check = parser.parse_args(arguments).check
    of = recorded()
    stale = [figure for figure in figures(of) if drawn_from(figure) != numbers(figure, of)]
    for figure in stale:
        what = "shows other numbers than are recorded" if check else "drawn"
        print(f"docs/figures/{figure.name}.svg: {what}")  # noqa: T201
        if not check:
            draw(figure, of)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
