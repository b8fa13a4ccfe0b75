"""``--prereg`` in ordinary projects: whatever they configure, the verdicts are the same, and measured once."""

from __future__ import annotations

import importlib.util
import json

import pytest

VERDICTS = {
    "below-two": "supported",
    "above-two": "refuted",
    "near-one": "inconclusive",
    "not-there": None,
    "quick-is-quicker": "supported",
}
REPEATS = 6

AGAIN = (
    "cannot be combined with --prereg: measuring again until a prediction is supported is not a test. "
    "Register more\n    repeats instead."
)
PLUGINS = {
    "xdist": "xdist",
    "rerunfailures": "pytest_rerunfailures",
    "cov": "pytest_cov",
    "timeout": "pytest_timeout",
}


def needs(*plugins: str) -> pytest.MarkDecorator:
    missing = [f"pytest-{name}" for name in plugins if importlib.util.find_spec(PLUGINS[name]) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


@pytest.fixture
def project(at_stage):
    return at_stage("halfway")


@pytest.fixture
def run(project, tmp_path):
    """Runs pytest as a project does that was never asked, and holds its verdicts to those that are due."""

    def run(*arguments: str, **environment: str) -> str:
        done = project.process("--prereg", f"--prereg-json={tmp_path}/out.json", *arguments, **environment)
        return held(project, tmp_path / "out.json", done.stdout + done.stderr, done.returncode)

    return run


@pytest.fixture
def run_here(project, judge, tmp_path):
    """As ``run``, in this process: quicker, for what only pytest itself reads."""

    def run(*arguments: str) -> str:
        done = judge(project, f"--prereg-json={tmp_path}/out.json", *arguments)
        return held(project, tmp_path / "out.json", done.stdout.str() + done.stderr.str(), done.ret)

    return run


def held(project, out, said: str, returncode: int) -> str:
    assert out.exists(), said
    told = {one["id"]: one["verdict"] for one in json.loads(out.read_text())["predictions"]}
    assert told == VERDICTS, said
    assert "1 failed, 2 passed, 1 inconclusive, 1 pending" in said
    assert returncode == 1, said
    assert project.repeats_run() == REPEATS, said
    return said


def configure(project, **settings: str) -> None:
    lines = "\n".join(f"{key} = {value}" for key, value in settings.items())
    project.write("pytest.ini", f"[pytest]\n{lines}\n")


def switched_off(said: str) -> str:
    (line,) = (line for line in said.splitlines() if line.startswith("prereg: switched off: "))
    return line.removeprefix("prereg: switched off: ").partition(" (predictions are measured once")[0]


def test_nothing_is_said_to_be_switched_off_where_nothing_is(run_here):
    assert "switched off" not in run_here()


# Neighbours that run tests in parallel, again, measured or under a timer


@needs("xdist")
@pytest.mark.parametrize("addopts", ["-n auto", "-d --tx 2*popen"])
def test_workers_from_addopts_are_left_out(project, run, addopts):
    configure(project, addopts=addopts)

    said = run()

    assert switched_off(said) in ("-n", "--tx")
    assert "2 workers" not in said


@needs("xdist")
def test_workers_that_hide_in_a_file_of_arguments_are_left_out(project, run):
    project.write("arguments.txt", "-n\n2\n")

    assert switched_off(run("@arguments.txt")) == "-n"


@needs("rerunfailures")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"addopts": "--reruns 2"}, "--reruns"),
        ({"reruns": "2", "reruns_delay": "1"}, "reruns (ini)"),
    ],
)
def test_reruns_are_left_out(project, run, settings, words):
    configure(project, **settings)

    assert switched_off(run()) == words


@needs("cov")
@pytest.mark.parametrize("plugins", [("pytest_cov", "prereg"), ("prereg", "pytest_cov")])
def test_coverage_is_left_out_whichever_plugin_is_first(project, run, plugins):
    configure(project, addopts="--cov=. --cov-report=term --cov-fail-under=100")
    loaded = [word for plugin in plugins for word in ("-p", plugin)]

    said = run(*loaded, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

    assert switched_off(said) == "--cov"
    assert "coverage:" not in said
    assert "FAIL Required test coverage" not in said
    assert not list(project.path.glob(".coverage*"))


@needs("timeout")
@pytest.mark.parametrize("settings", [{"addopts": "--timeout 1"}, {"timeout": "1", "session_timeout": "1"}])
def test_timeouts_are_left_out_and_a_long_repeat_is_waited_for(project, run, settings):
    slow_first_repeat(project)
    configure(project, **settings)

    said = run()

    assert switched_off(said) in ("--timeout", "timeout (ini), session_timeout (ini)")


def test_faulthandler_is_left_out_too(project, run):
    slow_first_repeat(project)
    exits = {"faulthandler_exit_on_timeout": "true"} if pytest.version_tuple >= (9, 0) else {}
    configure(project, faulthandler_timeout="1", **exits)

    assert "Timeout (" not in run()


def slow_first_repeat(project) -> None:
    wait = "time.sleep(2 * (repeat.index == 1 and repeat.arm == 'slow'))"
    project.edit("experiments/work.py", "    repeat.record", f"    {wait}\n    repeat.record")
    project.done("amend", "quick-is-quicker", "--reason", "To take longer")
    project.commit("Amend")


@needs("xdist", "rerunfailures", "cov", "timeout")
def test_everything_at_once(project, run):
    slow_first_repeat(project)
    addopts = "-n auto --reruns 2 --cov=. --strict-markers -W error"

    said = run("--timeout=1", PYTEST_ADDOPTS=addopts, PYTEST_TIMEOUT="1")

    assert switched_off(said) == "--reruns, -n, --timeout, PYTEST_TIMEOUT, --cov"


@pytest.mark.parametrize(
    ("typed", "flag"),
    [
        (["--reruns", "2"], "--reruns"),
        (["--reruns=2"], "--reruns"),
        (["--count", "3"], "--count"),
        (["--flake-finder"], "--flake-finder"),
        (["--retries=2"], "--retries"),
        (["--force-flaky"], "--force-flaky"),
        (["--looponfail"], "--looponfail"),
        (["-f"], "-f"),
    ],
)
def test_measuring_again_is_a_usage_error(project, judge, typed, flag):
    result = judge(project, *typed)

    assert f"ERROR: {flag} {AGAIN}" in result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.repeats_run() == 0


@pytest.mark.parametrize(
    ("typed", "flag"),
    [
        (["-n", "2"], "-n"),
        (["-n2"], "-n"),
        (["-n", "auto"], "-n"),
        (["--numprocesses=2"], "--numprocesses"),
        (["-d", "--tx", "2*popen"], "--tx"),
    ],
)
def test_measuring_in_parallel_is_a_usage_error(project, judge, typed, flag):
    result = judge(project, *typed)

    result.stderr.fnmatch_lines([f"ERROR: {flag} cannot be combined with --prereg: *", "*max-parallel*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.repeats_run() == 0


@needs("xdist", "rerunfailures")
@pytest.mark.parametrize("typed", [["-n0"], ["-n", "0"], ["--reruns=0"], ["--reruns", "0"]])
def test_what_switches_a_neighbour_off_may_be_typed(project, judge, typed):
    assert judge(project, *typed, "-k", "below-two").ret == 0


# What projects configure of pytest itself


STRICT = {"addopts": "--strict-config --strict-markers", "xfail_strict": "true", "filterwarnings": "error"}


@pytest.mark.parametrize("settings", [STRICT, {"strict": "true"}], ids=["flags", "strict"])
def test_strict_projects(project, run_here, settings):
    if "strict" in settings and pytest.version_tuple < (9, 0):
        pytest.skip("strict came with pytest 9")
    configure(project, **settings)

    run_here("-W", "error")


def test_tests_of_the_project_are_not_collected(project, run_here):
    project.write("tests/test_ordinary.py", "raise AssertionError('imported')")
    project.write("tests/test_other.py", "def test_it(): raise AssertionError('run')")
    configure(project, testpaths="tests", addopts="--doctest-modules --doctest-glob=*.toml")

    assert "collected 5 items" in run_here()


def test_tests_named_in_addopts_are_not_collected(project, run_here):
    project.write("tests/test_ordinary.py", "raise AssertionError('imported')")
    configure(project, addopts="tests")

    assert "collected 5 items" in run_here()


def test_an_option_of_a_conftest_in_addopts_keeps_its_value(project, run_here):
    project.write("conftest.py", "def pytest_addoption(parser): parser.addoption('--stage')")
    configure(project, addopts="--stage test")

    run_here("--stage", "production")


def test_fixtures_of_the_project_are_not_used(project, run_here):
    project.write(
        "conftest.py",
        """
import decimal, email.mime.text, xml.etree.ElementTree
import pytest

@pytest.fixture(autouse=True)
def each(): raise AssertionError("used")

@pytest.fixture(autouse=True, scope="session")
def once(): raise AssertionError("used")
""",
    )

    run_here()


def test_the_study_may_lie_in_a_package_that_cannot_be_imported(project, run_here):
    project.write("__init__.py", "raise AssertionError('imported')")

    run_here()


def test_hooks_of_the_project_that_reorder_or_ignore_tests(project, run_here):
    project.write(
        "conftest.py",
        """
import random

collect_ignore_glob = ["*.py"]

def pytest_collection_modifyitems(items):
    random.Random(1).shuffle(items)

def pytest_itemcollected(item):
    item.add_marker("project")
""",
    )
    configure(project, addopts="--strict-markers", norecursedirs="* .*", markers="project: ours")

    run_here()


def test_hooks_of_the_project_that_take_every_item_for_a_function(project, run_here):
    project.write(
        "conftest.py",
        """
import inspect
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "database" in item.fixturenames or item.cls is not None or "gpu" in item.module.__name__:
            item.add_marker("skip")
        item.fixturenames.insert(0, "database")
        assert item.originalname and inspect.signature(item.function) and not item.funcargs

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.description = str(item.function.__doc__)
    setattr(item, "rep_" + report.when, report)
    return report
""",
    )

    run_here()


def test_a_hook_of_the_project_that_runs_tests_again_measures_nothing_again(project, run_here):
    project.write(
        "conftest.py",
        """
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for again in range(3):
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            item.ihook.pytest_runtest_logreport(report=report)
    return True
""",
    )

    run_here()
