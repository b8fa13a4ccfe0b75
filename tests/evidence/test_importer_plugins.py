"""Formats that other packages bring: found by their entry points, and loaded when nothing of ours will do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from evidence_samples import experiment, study

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.results import read_result
from pytest_prereg.evidence.importing import import_files
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.registry.formats import is_format
from pytest_prereg.registry.plugins import brought_importers

DOCS = Path(__file__).parents[2] / "docs" / "importing.md"
EXAMPLE = DOCS.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
"""The module that the documentation shows, whole."""
LOG = "stopwatch 1\nserve 0.5\nserve 0.25\nserve 0.75\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with one entry point, as an installer does: a module and its metadata."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(tmp_path)
    brought_importers.cache_clear()

    def of(source, name="stopwatch", module="stopwatch_importer"):
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pytest_prereg]\n{name} = {module}\n")
        (folder / f"{module}.py").write_text(source)
        monkeypatch.delitem(sys.modules, module, raising=False)
        return folder

    yield of
    brought_importers.cache_clear()


def take(folder, content, name="a.log", **options):
    (folder / name).write_text(content)
    gate = experiment({"": 3}, metrics={"seconds": "s"})
    return read_session(import_files(study(folder, gate), gate, [folder / name], predictions={}, **options))


def refusal(folder, *given, **options):
    with pytest.raises(EvidenceError) as caught:
        take(folder, *given, **options)
    return str(caught.value)


def broken(body):
    return f"import pluggy\n@pluggy.HookimplMarker('pytest')\ndef pytest_prereg_importer():\n    {body}\n"


@pytest.mark.parametrize("options", [{}, {"form": "stopwatch"}])
def test_the_documented_example_reads_files_of_its_format(install, tmp_path, options):
    install(EXAMPLE)

    session = take(tmp_path, LOG, **options)

    assert [one.values["seconds"] for one in session.attempts] == [0.5, 0.25, 0.75]
    assert session.header.imported["format"] == "stopwatch"
    assert session.header.imported["benchmark"] == "serve"


def test_it_tells_where_a_file_is_wrong(install, tmp_path):
    install(EXAMPLE)

    assert 'a.log:3: PR110: "serve fast" is no name and a number' in refusal(
        tmp_path, "stopwatch 1\nserve 1\nserve fast\n"
    )


def test_a_command_may_leave_such_a_file(install, tmp_path):
    install(EXAMPLE)
    (tmp_path / "a.log").write_text(LOG)

    assert read_result(tmp_path / "a.log", "stopwatch", {"t": ("seconds", "s")}) == {"t": [0.5, 0.25, 0.75]}
    assert is_format("stopwatch")
    assert not is_format("stopclock")


def test_it_is_loaded_only_for_what_is_not_ours(install, tmp_path):
    """A plugin that can't even be loaded shows when one is."""
    install("raise RuntimeError('loaded')")

    take(tmp_path, "repeat,metric,value,unit\n1,seconds,1,s\n", name="a.csv")
    assert is_format("pyperf")
    told = refusal(tmp_path, LOG)

    assert 'PR127: plugin "stopwatch" failed: RuntimeError: loaded' in told
    assert 'It is the entry point "stopwatch_importer" of group "pytest_prereg"' in told


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (broken("return object()"), 'which has no "name", "repeat", "recognises" and "read"'),
        (broken("1 / 0"), "ZeroDivisionError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("def pytest_prereg_importer(): ...", 'write @pluggy.HookimplMarker("pytest") above it'),
    ],
)
def test_a_plugin_that_brings_no_importer_is_named(install, tmp_path, source, why):
    install(source)

    told = refusal(tmp_path, LOG)

    assert 'PR127: plugin "stopwatch"' in told
    assert why in told


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise ValueError('of its own')", "ValueError: of its own"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("return 3", "ValidationError"),
        ("return []", "no benchmark"),
        ("return [FoundBenchmark(name='a', repeats=(FoundRepeat(label='r', readings={'seconds': float('nan')}),))]", "NaN"),
        ("return [FoundBenchmark(name='a', repeats=(FoundRepeat(label='r', readings={'seconds': 'x'}),))]", "ValidationError"),
    ],
)  # fmt: skip
def test_what_a_plugin_does_wrong_while_it_reads_is_told_as_its_own(install, tmp_path, body, why):
    head, _, _ = EXAMPLE.partition("        lines = ")
    install(
        f"{head}        {body}\n\n\n@pluggy.HookimplMarker('pytest')\ndef pytest_prereg_importer():\n    return Stopwatch()\n"
    )

    assert why in refusal(tmp_path, LOG)


@pytest.mark.parametrize(
    "statement",
    [
        "import json; json.loads(data)",
        "complaints.add('XY1', 'wrong')",
        "complaints.add('PR110', 'wrong', line='3')",
        "complaints.fail('PR001', 'wrong')",
    ],
)
def test_where_it_failed_is_told_beside_the_file_that_it_read(install, tmp_path, statement):
    """The innermost line of the plugin, however deep below it something was raised."""
    install(EXAMPLE.replace("        runs = {}\n", f"        {statement}\n        runs = {{}}\n"))
    (line,) = (number for number, one in enumerate(EXAMPLE.splitlines(), 1) if one == "        runs = {}")

    told = refusal(tmp_path, LOG)

    assert told.startswith('a.log: PR127: plugin "stopwatch" could not read it as "stopwatch": ')
    assert told.endswith(f" (site/stopwatch_importer.py:{line})")


def test_what_is_no_list_of_benchmarks_is_told_with_the_function_that_returned_it(install, tmp_path):
    install(EXAMPLE.replace("return [", "return 3 or ["))
    (line,) = (number for number, one in enumerate(EXAMPLE.splitlines(), 1) if "def read(" in one)

    assert f" (site/stopwatch_importer.py:{line})" in refusal(tmp_path, LOG)


@pytest.mark.parametrize(
    ("source", "line"), [("import json\n\njson.loads('')\n", 3), ("import json\nif json:\n", 2)]
)
def test_a_plugin_that_can_not_be_loaded_is_told_with_the_line(install, tmp_path, source, line):
    install(source)

    assert f" (site/stopwatch_importer.py:{line})" in refusal(tmp_path, LOG)


def test_one_that_fails_when_it_is_asked_does_not_recognise_the_file(install, tmp_path):
    install(EXAMPLE.replace("return data.startswith", "return data.begins_with"))

    assert "PR127: the file is of no format that is known" in refusal(tmp_path, LOG)
    assert take(tmp_path, LOG, form="stopwatch").attempts


def test_two_plugins_of_one_format_are_both_named(install, tmp_path):
    install(EXAMPLE)
    install(EXAMPLE, name="other", module="other_importer")

    assert 'plugins "other" and "stopwatch" both bring format "stopwatch"' in refusal(tmp_path, LOG)


def test_a_format_of_the_package_stays_its_own(install, tmp_path):
    install(EXAMPLE.replace('name = "stopwatch"', 'name = "csv"'))

    assert "PR127: the file is of no format that is known" in refusal(tmp_path, LOG)


def test_the_command_finds_it_where_no_pytest_runs(install, tmp_path):
    site = install(EXAMPLE)
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "predictions.toml").write_text(
        '[study]\nid = "s"\n[experiments.e]\nmetrics = { seconds = "s" }\nrepeats = 3\n'
        '[predictions.p]\nclaim = "c"\nexperiment = "e"\nquantity = "seconds"\n'
        'predicts = "<= 1 s"\nfalsifier = "> 2 s"\n'
    )
    environ = os.environ | {"PYTHONPATH": str(site)}
    code = "from pytest_prereg.cli import main; import sys; main(sys.argv[1:], standalone_mode=False); assert 'pytest' not in sys.modules"

    for arguments in (["lock"], ["import", "a.log", "--experiment", "e"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    assert "stopwatch: serve; a repeat is a run" in done.stdout
