"""A format that nobody here reads stops what is registered or measured, and nothing else."""

from __future__ import annotations

import pytest
from reading_study import READ

from pytest_prereg.errors import MeasureError, StudyError
from pytest_prereg.measure.executors.local import LocalExecutor
from pytest_prereg.registration import register_new
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import read_lock
from pytest_prereg.registry.plugins import brought_importers

NEW = """\
[experiments.other]
command = ["run"]
repeats = 5
[predictions.short]
claim = "It takes less than a second."
experiment = "other"
quantity = "wall"
predicts = "< 1 s"
falsifier = ">= 2 s"
"""


def written(folder, text):
    path = folder / "predictions.toml"
    path.write_text(text)
    return load_study(path)


@pytest.fixture
def broken_plugin(tmp_path, monkeypatch):
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_prereg]\nbroken = no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    brought_importers.cache_clear()
    yield
    brought_importers.cache_clear()


def test_it_is_loaded_and_neither_registered_nor_measured(tmp_path):
    study = written(tmp_path, READ.replace('"json"', '"jsn"'))

    told = '5: PR136: experiment "read": "read": unknown format "jsn"; did you mean "json"?'
    for begin in (lambda: register_new(study), LocalExecutor(study, study.experiments["read"]).start):
        with pytest.raises((StudyError, MeasureError)) as caught:
            begin()
        assert told in str(caught.value)


def test_a_broken_plugin_is_named_where_it_is_wanted(tmp_path, broken_plugin):
    study = written(tmp_path, READ.replace('"json"', '"stopwatch"'))

    with pytest.raises(StudyError, match='PR127: experiment "read": "read": plugin "broken" failed'):
        register_new(study)


@pytest.mark.parametrize("key", ["new", "known"])
def test_what_is_registered_already_keeps_nothing_else_from_being_so(
    tmp_path, broken_plugin, monkeypatch, key
):
    study = written(tmp_path, READ.replace('"json"', '"stopwatch"'))
    with monkeypatch.context() as installed:
        installed.setattr("pytest_prereg.registry.read_formats.known_formats", lambda form: (form,))
        register_new(study)

    register_new(written(tmp_path, study.path.read_text() + (NEW if key == "new" else "")))

    assert {*read_lock(study.lock_path).predictions} == {"quick", *(["short"] if key == "new" else [])}
