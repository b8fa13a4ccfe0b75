"""Programs that attack their grader: each fools, outlives or robs a naive one, and none does so to a sandbox.

Every attack runs twice here, ``PREREG_STORM=full`` 20 times, all in one sandbox after another with others
and with right programs beside them, and once against a naive grader, in a pretend host that may be harmed.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import naive_host
import pytest
from attacked_host import Host, Listener, Traces, adopting_orphans, left, places
from attacks_on_hosts import TRESPASSES
from attacks_on_limits import EXHAUSTION
from attacks_on_verdicts import VERDICTS
from naive_host import HOME, PretendHost, Seen
from sandbox_attacks import ANSWER, LIMITS, SECRET, Attack
from sandboxes import needs_namespaces

from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.outcomes import Graded, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

pytestmark = needs_namespaces

ATTACKS = (*VERDICTS, *EXHAUSTION, *TRESPASSES)
RUNS = 20 if os.environ.get("PREREG_STORM") == "full" else 2
SEED = int(os.environ.get("PREREG_STORM_SEED") or random.SystemRandom().randrange(10**6))
HEAVY = {"memory", "disk", "output"}
"""Attacks on naive graders that take so much of these that one of them at a time is enough."""
AT_ONCE = 6
"""Pretend hosts; most of the time they wait."""
OVERSHOOT = 0.2 * LIMITS.deadline + 0.2

INNOCENT = (
    Completion(
        program="def solve(x):\n    return x * x\n",
        tests=(
            CallTest(function="solve", args=[12], expected=144),
            CallTest(function="solve", args=[3], expected=9),
        ),
    ),
    Completion(
        program="import time\nnumber = int(input())\ntime.sleep(0.2)\nprint(number + 1)\n",
        tests=(ScriptTest(stdin="41\n", expected="42\n"),),
    ),
)
"""Right programs; one takes long enough to be there when others attack."""


@dataclass
class Fought:
    """What came of all attacks on a sandbox."""

    graded: dict[str, list[Graded]] = field(default_factory=dict)
    innocent: list[Graded] = field(default_factory=list)
    harm: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    stall: float = 0.0
    """Seconds by which a thread that only sleeps woke too late, at most: as late may any deadline be."""


@pytest.fixture(scope="module")
def chosen(request: pytest.FixtureRequest) -> list[Attack]:
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    names = {params["attack"].name for params in calls if isinstance(params.get("attack"), Attack)}
    return [attack for attack in ATTACKS if attack.name in names] or list(ATTACKS)


@pytest.fixture(scope="module")
def fought(chosen: list[Attack]) -> Iterator[Fought]:
    """Every attack, several times and in an order drawn by chance, each beside a right program."""
    queue = [attack for attack in chosen for _ in range(RUNS)]
    random.Random(SEED).shuffle(queue)
    with (
        TemporaryDirectory(prefix="prereg-attacked-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        temporary = Path(name, "tmp")
        temporary.mkdir()
        Path(name).chmod(0o755)
        (Path(name) / "host").mkdir()
        patch.setenv("TMPDIR", str(temporary))
        patch.setenv("GRADER_TOKEN", SECRET)
        began = time.monotonic()
        result = fight(queue, Path(name, "host"), temporary)
        print(
            f"storm {SEED}: {len(queue)} attacks in {time.monotonic() - began:.0f} s, stalled {result.stall:.3f} s"
        )
        yield result


def fight(queue: list[Attack], folder: Path, temporary: Path) -> Fought:
    result = Fought({attack.name: [] for attack in queue})
    with Listener(SECRET) as listener, Host(folder, SECRET, listener).open() as host, adopting_orphans():
        before = Traces.now(temporary)
        with stalls(result), Sandbox(limits=LIMITS, workers=4, warm=4) as sandbox:
            pairs = [
                (
                    attack,
                    sandbox.submit(attack.completion(host.places)),
                    sandbox.submit(INNOCENT[number % 4 == 0]),
                )
                for number, attack in enumerate(queue)
            ]
            for attack, attacking, innocent in pairs:
                result.graded[attack.name].append(attacking.result())
                result.innocent.append(innocent.result())
        result.left = left(before, temporary)
        result.harm = host.harm()
    return result


@contextmanager
def stalls(result: Fought) -> Iterator[None]:
    done = threading.Event()

    def doze() -> None:
        began = time.monotonic()
        while not done.wait(0.01):
            result.stall = max(result.stall, time.monotonic() - began - 0.01)
            began = time.monotonic()

    thread = threading.Thread(target=doze)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def visits(chosen: list[Attack], fought: Fought) -> Iterator[dict[str, Seen]]:
    """A pretend host after each attack on a naive grader; none where there can't be one."""
    if naive_host.unavailable():
        yield {}
        return
    with Listener(SECRET) as listener:
        jobs = {attack.name: attack.job(places(HOME, listener)) for attack in chosen}
        began = time.monotonic()
        seen = visits_of(jobs, {attack.name for attack in chosen if attack.exceeds in HEAVY})
        for attack in chosen:
            if not attack.has_succeeded(seen[attack.name]):  # the machine may have been busy
                jobs[attack.name]["timeout"] *= 2
                seen[attack.name] = one_visit(jobs[attack.name])
        print(f"{len(seen)} visits in {time.monotonic() - began:.0f} s")
        yield seen


def visits_of(jobs: dict[str, dict[str, Any]], heavy: set[str]) -> dict[str, Seen]:
    """Returns what pretend hosts look like after naive graders had those jobs; of heavy ones one at a time."""
    # The longest first, so that none is waited for at the end.
    names = sorted(jobs, key=lambda name: -jobs[name]["timeout"])
    alone, others = queue_of(names, heavy), queue_of(names, jobs.keys() - heavy)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = [pool.submit(many_visits, queue, jobs) for queue in (alone, *[others] * (AT_ONCE - 1))]
        return {name: seen for part in parts for name, seen in part.result().items()}


def queue_of(names: list[str], chosen: AbstractSet[str]) -> Queue[str]:
    queue = Queue[str]()
    for name in names:
        if name in chosen:
            queue.put(name)
    return queue


def one_visit(job: dict[str, Any]) -> Seen:
    with PretendHost(SECRET) as host:
        return host.visit(job)


def many_visits(names: Queue[str], jobs: dict[str, dict[str, Any]]) -> dict[str, Seen]:
    """Lets one host be visited until there is nobody left who wants to."""
    seen = {}
    with PretendHost(SECRET) as host, suppress(Empty):
        while True:
            name = names.get_nowait()
            seen[name] = host.visit(jobs[name])
    return seen


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_what_succeeds_against_a_naive_grader_fails_in_a_sandbox(
    attack: Attack, fought: Fought, visits: dict[str, Seen]
) -> None:
    runs = fought.graded[attack.name]
    assert len(runs) == RUNS
    for graded in runs:
        hold(attack, graded, late=fought.stall)
    if not visits:
        pytest.skip(
            f"it failed here, and there is no grader that it could succeed against: {naive_host.unavailable()}"
        )
    seen = visits[attack.name]
    if not attack.has_succeeded(seen) and (refused := re.search(r"^refused: .*$", seen.loot, re.MULTILINE)):
        pytest.skip(f"it failed here, and this machine lets nobody do that: {refused[0]}")
    assert attack.has_succeeded(seen), f"{attack.succeeds.value}? {seen}"


def hold(attack: Attack, graded: Graded, *, late: float) -> None:
    """Asserts that an attack ended as it has to."""
    ends = [test.outcome for test in graded.tests]
    assert set(ends) <= attack.outcomes, graded
    assert graded.outcome == next((each for each in ends if each is not Outcome.PASS), Outcome.PASS), graded
    decisive = next((test.evidence for test in graded.tests if test.outcome is not Outcome.PASS), "")
    assert re.search(attack.evidence, decisive), graded
    for text in (graded.evidence, *(test.evidence for test in graded.tests)):
        assert text.isprintable(), graded
        assert SECRET not in text, graded
    if ANSWER in decisive:
        assert f"answered {ANSWER}" not in decisive, graded
    assert graded.seconds <= LIMITS.deadline + (0 if attack.quick else OVERSHOOT + late), graded
    assert graded.isolation == "namespaces"


def test_right_programs_pass_whatever_runs_beside_them(fought: Fought) -> None:
    assert fought.innocent
    assert [graded for graded in fought.innocent if graded.outcome is not Outcome.PASS] == []


def test_the_host_is_as_it_was(fought: Fought) -> None:
    assert fought.harm == []


def test_no_process_mount_descriptor_segment_or_file_is_left(fought: Fought) -> None:
    assert fought.left == []
