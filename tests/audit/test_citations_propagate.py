"""Excluding a repeat breaks every citation that used it, until it is written again, and no other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_exclusions_propagate import drawn, measure
from written_studies import WrittenStudy, assessments

from pytest_prereg.audit.citing.citations import page_of, rewritten
from pytest_prereg.audit.citing.figures import Figures
from pytest_prereg.audit.citing.neighbours import Neighbours
from pytest_prereg.audit.setting_aside import exclude
from pytest_prereg.registry.lock import write_lock

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.citing.citations import Page

STUDIES = settings().max_examples // 5
FIELDS = ("estimate", "interval", "low", "high", "n", "verdict", "excluded", "method", "confidence")


def page(state: StudyState, text: str) -> Page:
    return page_of(Path("page.md"), text, Figures(state), Neighbours(state))


def cited(state: StudyState) -> tuple[str, dict[int, str]]:
    """A page that cites every field that every prediction has, and whose citation is on which line."""
    lines = [
        (name, f"{name} says <!-- prereg: {name}.{field} exploratory --><!-- /prereg --> of {field}.\n")
        for name in state.study.predictions
        for field in FIELDS
    ]
    without = {problem.line for problem in page(state, "".join(line for _, line in lines)).problems}
    kept = [each for at, each in enumerate(lines, 1) if at not in without]
    text = "".join(line for _, line in kept)
    return rewritten(text, page(state, text).changes), {at: name for at, (name, _) in enumerate(kept, 1)}


def wrong_lines(state: StudyState, text: str) -> set[int]:
    return {problem.line for problem in page(state, text).complaints}


@settings(max_examples=STUDIES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32))
def test_an_exclusion_breaks_every_citation_that_used_the_repeat_and_no_other(seed):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        made = WrittenStudy(Path(folder), drawn(random))
        measure(random, made)
        state = made.record()
        text, whose = cited(state)
        assert wrong_lines(state, text) == set()
        before = assessments(state)
        used = sorted({repeat for one in before.values() for repeat in one.judgement.repeats})
        if not used:
            return
        repeat = random.choice(used)
        write_lock(state.study.lock_path, exclude(state, repeat, "the fan stood still", "tool"))
        after = assessments(made.state())
        touched = {
            name
            for name, was in before.items()
            if repeat in was.judgement.repeats or was.judgement.verdict is not after[name].judgement.verdict
        }
        broken = {line for line, name in whose.items() if name in touched}
        assert wrong_lines(made.state(), text) == broken
        assert page(made.state(), text).changes == (), "nothing stale may be written"
        recorded = made.record()
        again = page(recorded, rewritten(text, page(recorded, text).changes))
        assert all(" has no " in problem.message for problem in again.complaints)
