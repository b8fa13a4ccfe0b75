"""``ref`` and ``build`` say which versions of the code are compared; what can't be one is refused by its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.supported import not_yet
from pytest_prereg.registry.versions import refs_of, version_name

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Study

STUDY = """\
[study]
id = "versions"
[experiments.pr]
{what}
repeats = 5
arms.base = {base}
arms.head = {head}
[predictions.faster]
claim = "Faster."
experiment = "pr"
{compared}
quantity = "wall"
predicts = "<= 0.9"
falsifier = ">= 1"
"""
SOUND = {
    "what": 'command = ["./bench"]\nbuild = ["make"]',
    "base": '{ ref = "merge-base:origin/main" }',
    "head": '{ ref = "worktree" }',
    "compared": 'contrast = "head / base"',
}


def loaded(folder: Path, **changed: str) -> Study:
    path = folder / "predictions.toml"
    path.write_text(STUDY.format(**{**SOUND, **changed}), encoding="utf-8")
    return load_study(path)


def test_arms_that_are_versions_can_be_registered(tmp_path: Path):
    study = loaded(tmp_path)
    assert not_yet(study) == []
    assert refs_of(study.experiments["pr"]) == {"base": "merge-base:origin/main", "head": "worktree"}


def test_what_is_compared_and_how_it_is_built_are_registered(tmp_path: Path):
    def digest(**changed: str) -> str:
        study = loaded(tmp_path, **changed)
        return registration_digest(study, study.predictions["faster"])

    assert len({digest(), digest(base='{ ref = "v1" }'), digest(what='command = ["./bench"]')}) == 3


def test_arms_that_a_sweep_makes_of_one_are_one_version(tmp_path: Path):
    study = loaded(
        tmp_path,
        what='command = ["./bench", "{size}"]\nsweep.size = [1, 2]',
        compared='contrast = "head / base"\nfor-each = "size"',
    )
    arms = study.experiments["pr"].arms
    assert {name: version_name(arm) for name, arm in arms.items()} == {
        "base[size=1]": "base",
        "base[size=2]": "base",
        "head[size=1]": "head",
        "head[size=2]": "head",
    }


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"what": 'metrics = { wall = "s" }'}, 'experiment "pr": "ref" needs a "command"'),
        ({"head": "{}"}, 'arm "head" has no "ref", and "base" has'),
        ({"head": '{ ref = "" }'}, '"ref" is "", which names no revision'),
        ({"head": '{ ref = "merge-base:" }'}, '"ref" is "merge-base:", which names no revision'),
        ({"head": '{ ref = " main" }'}, "which names no revision"),
        ({"head": '{ ref = "-x" }'}, '"ref" is "-x", which git would take for an option'),
        ({"head": '{ ref = "merge-base:--all" }'}, "which git would take for an option"),
        ({"head": '{ ref = "main..topic" }'}, '"ref" is "main..topic", which is a range'),
        ({"head": "{ ref = 1 }"}, '"ref" must be text'),
        ({"what": 'command = ["./bench"]\nbuild = []'}, '"build" names no program'),
        ({"what": 'command = ["./bench"]\nbuild = ["make", "-j{n}"]'}, '"build" has "{n}", and nothing is'),
        ({"what": 'command = ["./bench"]\nbuild = ["a\\u0000b"]'}, '"build" has a NUL in "a\\x00b"'),
        ({"base": "{}", "head": "{}"}, '"build" makes a version of the code, and no arm has a "ref"'),
    ],
)
def test_what_is_no_version_is_refused_at_its_line(tmp_path: Path, changed: dict[str, str], wanted: str):
    with pytest.raises(StudyError) as caught:
        loaded(tmp_path, **changed)
    problems = [problem for problem in caught.value.problems if wanted in problem.message]
    assert [problem.code for problem in problems] == ["PR005"]
    lines = (tmp_path / "predictions.toml").read_text().splitlines()
    assert problems[0].line is not None
    at = lines[problems[0].line - 1]
    assert at.startswith(("arms.", "build"))


def test_an_arm_without_a_ref_is_told_what_to_write(tmp_path: Path):
    with pytest.raises(StudyError, match=r'head = \{ ref = "worktree" \}'):
        loaded(tmp_path, head="{}")


def test_a_slope_over_versions_that_differ_is_over_more_than_its_parameter(tmp_path: Path):
    arms = {"base": '{ ref = "main", n = 1 }', "head": '{ ref = "worktree", n = 2 }'}
    what = 'command = ["./bench", "{n}"]'
    with pytest.raises(StudyError, match='differ in "ref", too'):
        loaded(tmp_path, what=what, compared='contrast = "exponent(n)"', **arms)


def test_the_example_of_the_documentation_can_be_registered(tmp_path: Path):
    page = Path(__file__).parents[2] / "docs" / "versions.md"
    _, _, rest = page.read_text(encoding="utf-8").partition("```{code-block} toml\n")
    path = tmp_path / "predictions.toml"
    path.write_text(rest.partition("```")[0], encoding="utf-8")
    study = load_study(path)
    assert not_yet(study) == []
    assert study.predictions["no-slower"].arms == ("head", "base")
