"""Ways to a false "supported" that looks confirmatory, each tried as its author would: by command or by editor."""

from __future__ import annotations

import json

import pytest

SLOW = (2.91, 3.12, 3.33, 3.04, 3.25)


def rows(values, unit="s"):
    lines = (f"{index},wall,{value},{unit}\n" for index, value in enumerate(values, 1))
    return "repeat,metric,value,unit\n" + "".join(lines)


def as_json(values):
    return json.dumps(
        [{"repeat": f"r{i}", "metric": "wall", "value": v, "unit": "s"} for i, v in enumerate(values)]
    )


# Importing the same numbers again


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("again.csv", rows(SLOW) + "\n"),
        ("again.csv", rows(SLOW[::-1])),
        ("again.csv", rows(SLOW[:4])),
        ("again.csv", rows((*SLOW, 9.0))),
        ("again.json", as_json(SLOW)),
    ],
    ids=["a blank line more", "another order", "some of them", "one more", "another format"],
)
def test_the_same_numbers_are_not_taken_in_twice(at_stage, name, text):
    project = at_stage("registered")
    project.write("rows.csv", rows(SLOW))
    project.done("import", "rows.csv", "--experiment", "rows")
    project.write(name, text)

    result = project.prereg("import", name, "--experiment", "rows")

    assert result.exit_code == 1
    assert f"{name}: PR119: its repeats were imported already, all or some of them, as" in result.output
    assert len(project.evidence()) == 1


def test_coarse_numbers_may_come_again(at_stage):
    project = at_stage("registered")
    project.write("rows.csv", rows((1, 1, 2, 1, 2)))
    project.done("import", "rows.csv", "--experiment", "rows")
    project.write("rows.csv", rows((1, 2, 1, 1, 2)))

    assert "into series 2" in project.done("import", "rows.csv", "--experiment", "rows")
