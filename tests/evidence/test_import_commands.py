"""How the next series of an experiment is imported, from what the files so far were given with."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from evidence_samples import experiment, header

from pytest_prereg.evidence.import_commands import next_import

COMMAND = "pytest-prereg import FILE --experiment gate-a"


def brought(of, /, **options):
    attempts = [SimpleNamespace(arm=of)]
    return SimpleNamespace(
        header=header(origin="imported", imported={"name": "a", **options}), attempts=attempts
    )


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([], f'{COMMAND}, with --arm where FILE names none of "new" and "old"'),
        ([brought("new"), brought("old")], COMMAND),
        ([brought("new", arm="new"), brought("old", arm="old")], f"{COMMAND} --arm new and {COMMAND} --arm old"),
        (
            [brought("new", arm="new", select="a b")],
            f"{COMMAND} --arm new --select 'a b' and {COMMAND} --arm old --select NAME",
        ),
        ([brought("new", **{"asked-format": "json"}), brought("old", arm=3)], f"{COMMAND} --format json and {COMMAND}"),
    ],
)  # fmt: skip
def test_of_an_experiment_with_two_arms(files, told):
    assert next_import(experiment({"new": 3, "old": 3}), files) == told


def test_of_one_without_arms():
    assert next_import(experiment({"": 3}), []) == COMMAND
    assert next_import(experiment({"": 3}), [brought("", select="2")]) == f"{COMMAND} --select 2"
