"""Small programming problems, with solutions of every kind and hidden tests that a seed draws.

Every other test of a problem, the first included, is one at which its wrong solution gives another answer;
at the others it is right. So what a wrong completion is worth is known: half, of an even number of tests.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion, ScriptTest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.measure.workloads.sandbox.completions import Test

WORKLOAD_VERSION = "1"


class Kind(StrEnum):
    """What a solution does."""

    RIGHT = "right"
    WRONG = "wrong"
    HUNG = "hung"
    CRASHING = "crashing"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem, and solutions of it."""

    name: str
    solutions: dict[Kind, str]
    draw: Callable[[random.Random, bool], Test]
    """Returns a test; one that a wrong solution fails, if asked for."""

    def completion(self, kind: Kind, *, tests: int, seed: str) -> Completion:
        """Return a solution of a kind, with so many hidden tests, drawn from the seed."""
        generator = random.Random(f"{self.name}: {seed}")  # noqa: S311  # a reproducible draw, no secret
        drawn = tuple(self.draw(generator, number % 2 == 0) for number in range(tests))
        return Completion(program=self.solutions[kind], tests=drawn)


def kinds_of(counts: dict[Kind, int], completions: int, seed: int) -> list[Kind]:
    """Return the kind of each completion: so many hang, crash and are wrong, at places that the seed draws.

    Places are taken in one order whatever the counts: what hangs where few do, also does where more do.
    """
    order = list(range(completions))
    random.Random(f"places: {seed}").shuffle(order)  # noqa: S311  # a reproducible draw, no secret
    kinds = [Kind.RIGHT] * completions
    places = iter(order)
    for kind in (Kind.HUNG, Kind.CRASHING, Kind.WRONG):
        for _ in range(counts.get(kind, 0)):
            kinds[next(places)] = kind
    return kinds


def completions_of(kinds: Sequence[Kind], *, tests: int, seed: int) -> list[Completion]:
    """Return a completion of each kind, its problem and its hidden tests being those of its place."""
    return [
        PROBLEMS[place % len(PROBLEMS)].completion(kind, tests=tests, seed=f"{seed}, {place}")
        for place, kind in enumerate(kinds)
    ]


def _draw_evens(generator: random.Random, telling: bool) -> CallTest:  # noqa: FBT001
    numbers = [generator.randint(0, 10**6) for _ in range(generator.randint(3, 30))]
    if telling:
        numbers.insert(generator.randint(0, len(numbers)), -2 * generator.randint(1, 10**6))
    expected = sum(number for number in numbers if number % 2 == 0)
    return CallTest(function="sum_of_evens", args=[numbers], expected=expected)


def _draw_palindrome(generator: random.Random, telling: bool) -> CallTest:  # noqa: FBT001
    half = "".join(generator.choices("abcdefgh", k=generator.randint(2, 20)))
    text = half + half[::-1] if generator.random() < 0.5 or telling else half + "xy" + half  # noqa: PLR2004
    text = text.capitalize() if telling else text
    folded = text.lower()
    return CallTest(function="is_palindrome", args=[text], expected=folded == folded[::-1])


def _draw_merge(generator: random.Random, telling: bool) -> CallTest:  # noqa: FBT001
    spans, start = [], 0
    for _ in range(generator.randint(2, 12)):
        start += generator.randint(2, 9)
        end = start + generator.randint(1, 9)
        spans.append([start, end])
        start = end
    expected = [list(span) for span in spans]
    if telling:  # the last one is cut in two that touch
        start, end = spans.pop()
        spans += [[start, end], [end, end + 3]]
        expected[-1] = [start, end + 3]
    generator.shuffle(spans)
    return CallTest(function="merge", args=[spans], expected=expected)


def _draw_median(generator: random.Random, telling: bool) -> CallTest:  # noqa: FBT001
    count = 2 * generator.randint(2, 20) + (0 if telling else 1)
    numbers = [number + generator.random() / 2 for number in generator.sample(range(-1000, 1000), count)]
    return CallTest(
        function="median",
        kwargs={"numbers": numbers},
        expected=statistics.median(numbers),
        tolerance=1e-9,
    )


def _draw_words(generator: random.Random, telling: bool) -> ScriptTest:  # noqa: FBT001
    words = generator.choices(["red", "green", "blue", "grey", "white"], k=generator.randint(5, 40))
    if telling:
        words = [*words, words[0].upper()]
    counts = dict.fromkeys(sorted({word.lower() for word in words}), 0)
    for word in words:
        counts[word.lower()] += 1
    return ScriptTest(
        stdin=" ".join(words) + "\n",
        expected="".join(f"{word} {count}\n" for word, count in counts.items()),
    )


PROBLEMS = (
    Problem(
        name="sum of evens",
        draw=_draw_evens,
        solutions={
            Kind.RIGHT: """\
def sum_of_evens(numbers):
    return sum(number for number in numbers if number % 2 == 0)
""",
            Kind.WRONG: """\
def sum_of_evens(numbers):
    return sum(number for number in numbers if number > 0 and number % 2 == 0)
""",
            Kind.HUNG: """\
def sum_of_evens(numbers):
    total = 0
    while numbers:
        total += numbers[0] if numbers[0] % 2 == 0 else 0
    return total
""",
            Kind.CRASHING: """\
def sum_of_evens(numbers):
    return sum(number for number in numbers if number % (number - numbers[0]) == 0)
""",
        },
    ),
    Problem(
        name="palindrome",
        draw=_draw_palindrome,
        solutions={
            Kind.RIGHT: """\
def is_palindrome(text):
    folded = text.lower()
    return folded == folded[::-1]
""",
            Kind.WRONG: """\
def is_palindrome(text):
    return text == text[::-1]
""",
            Kind.HUNG: """\
import time

def is_palindrome(text):
    while True:
        time.sleep(3600)
""",
            Kind.CRASHING: """\
def is_palindrome(text):
    return is_palindrome(text[1:-1]) and text[0] == text[-1]
""",
        },
    ),
    Problem(
        name="merge",
        draw=_draw_merge,
        solutions={
            Kind.RIGHT: """\
def merge(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
""",
            Kind.WRONG: """\
def merge(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
""",
            Kind.HUNG: """\
import signal

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)

def merge(spans):
    while True:
        pass
""",
            Kind.CRASHING: """\
import os

def merge(spans):
    os.abort()
""",
        },
    ),
    Problem(
        name="median",
        draw=_draw_median,
        solutions={
            Kind.RIGHT: """\
def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2
""",
            Kind.WRONG: """\
def median(numbers):
    return sorted(numbers)[len(numbers) // 2]
""",
            Kind.HUNG: """\
import os

def median(numbers):
    if os.fork():
        os.wait()
    while True:
        pass
""",
            Kind.CRASHING: """\
def median(numbers)
    return sorted(numbers)[len(numbers) // 2]
""",
        },
    ),
    Problem(
        name="words",
        draw=_draw_words,
        solutions={
            Kind.RIGHT: """\
counts = {}
for word in input().lower().split():
    counts[word] = counts.get(word, 0) + 1
for word in sorted(counts):
    print(word, counts[word])
""",
            Kind.WRONG: """\
counts = {}
for word in input().split():
    counts[word] = counts.get(word, 0) + 1
for word in sorted(counts):
    print(word, counts[word])
""",
            Kind.HUNG: """\
words = input().split()
while words:
    words = [word.lower() for word in words]
""",
            Kind.CRASHING: """\
counts = {}
for word in input().split():
    counts[word] += 1
""",
        },
    ),
)
"""In the order in which the places of a batch take them, over and over."""
