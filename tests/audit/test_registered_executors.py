"""Where repeats ran is registered, where it is named: a session that ran elsewhere decides nothing."""

from __future__ import annotations

import pytest
from written_studies import WrittenStudy, ok

TEXT = """\
[study]
id = "small"

[experiments.runs]
command = ["true"]
repeats = 3
{executor}

[predictions.quick]
claim = "x"
experiment = "runs"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
ROWS = {("", index): ok(wall=1 + index / 64) for index in (1, 2, 3)}


def problems(folder, registered, ran):
    line = f'executor = "{registered}"' if registered else ""
    made = WrittenStudy(folder, TEXT.format(executor=line))
    made.session("runs", ROWS, executor=ran)
    return [one.message for file in made.state().files["runs"] for one in file.problems]


@pytest.mark.parametrize(
    ("registered", "ran", "wrong"),
    [("modal", "modal", False), ("modal", "local", True), ("", "modal", False), ("", "local", False)],
)
def test_what_names_a_service_was_run_there_or_was_not_measured_as_registered(
    tmp_path, registered, ran, wrong
):
    found = problems(tmp_path, registered, ran)
    assert bool(found) is wrong
    if wrong:
        assert found[0].endswith('was run on "local", and "modal" was registered')
