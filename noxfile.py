"""Every check of the project, by name: ``nox -l`` lists them, ``nox -s lint types`` runs some."""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "docs", "predictions", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = ["3.11", "3.12", "3.13"]
OLDEST = PYTHONS[0]
CONSTRAINTS = ".ci/constraints.txt"
LIBRARIES = {
    "3.11": ["numpy==1.26.*", "scipy==1.11.*"],
    "3.12": ["numpy==1.26.*", "scipy==1.11.*"],
    "3.13": ["numpy==2.1.*", "scipy==1.14.*"],
}
"""The oldest that are supported and have a wheel for each Python."""


def group(name: str) -> list[str]:
    """Requirements of a dependency group, resolved here so that any version of pip will do."""
    return list(nox.project.dependency_groups(PYPROJECT, name))


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests, without torch."""
    session.install("--editable", ".", *group("tests"))
    session.run("pytest", *session.posargs)


@nox.session(python=OLDEST)
def tests_torch(session: nox.Session) -> None:
    """Run the tests with torch, so that those which need it run as well."""
    session.install(
        "--constraint", CONSTRAINTS, "--editable", ".[torch]", *group("tests"), *group("reference")
    )
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS)
@nox.parametrize("libraries", ["oldest", "newest"])
def records(session: nox.Session, libraries: str) -> None:
    """Hold the golden records to the last digit, with the oldest and the newest numpy and scipy."""
    pins = LIBRARIES[str(session.python)] if libraries == "oldest" else []
    session.install("--upgrade", "--editable", ".", *group("tests"), *pins or ["numpy", "scipy"])
    session.run("pytest", "tests/judge/test_golden_records.py", *session.posargs)


@nox.session(python=OLDEST)
def storms(session: nox.Session) -> None:
    """Strike runs with 200 faults, and kill them more often than the tests do: CI has a tenth of it."""
    session.install("--editable", ".", *group("tests"), *group("modal"))
    storms = [
        "tests/plugin/test_fault_storm.py",
        "tests/plugin/test_interruption.py",
        "tests/modal/test_modal_storm.py",
    ]
    env = {"PREREG_STORM": "full", "PREREG_MODAL": "required"}
    session.run("pytest", "-s", *storms, *session.posargs, env=env)


@nox.session(python=OLDEST)
def attacks(session: nox.Session) -> None:
    """Attack the sandbox in every way that is known, 20 times each: CI does it twice."""
    session.install("--editable", ".", *group("tests"))
    session.run(
        "pytest",
        "-s",
        "tests/measure/test_sandbox_attacks.py",
        *session.posargs,
        env={"PREREG_STORM": "full"},
    )


@nox.session(python=OLDEST)
def tools(session: nox.Session) -> None:
    """Read files that other tools write here and now: those of Python, and what else is installed."""
    session.install("--editable", ".", *group("tests"), *group("tools"))
    tests = "tests/evidence/test_fresh_files.py"
    session.run("pytest", tests, *session.posargs, env={"PREREG_STORM": "full"})


@nox.session(python=OLDEST)
def modal(session: nox.Session) -> None:
    """Test what runs on Modal against a stand-in on this machine, which Modal's own client talks to."""
    session.install("--editable", ".", *group("tests"), *group("modal"))
    session.run("pytest", "tests/modal", *session.posargs, env={"PREREG_MODAL": "required"})


@nox.session(python=OLDEST)
def calibration(session: nox.Session) -> None:
    """Simulate 20,000 studies a cell and write the tables of the documentation: an hour on two cores."""
    session.install("--editable", ".")
    session.run("python", "benchmarks/calibration.py", "--write", *session.posargs)


@nox.session(python=OLDEST)
def figures(session: nox.Session) -> None:
    """Draw the study's figures whose numbers have changed."""
    session.install("--editable", ".[report]")
    session.run("python", "docs/figures.py", *session.posargs)


@nox.session(python=OLDEST)
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session(python=OLDEST)
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    session.install("--editable", ".", *group("types"))
    session.run("mypy", *session.posargs)


@nox.session(python=OLDEST)
def predictions(session: nox.Session) -> None:
    """Judge the committed evidence again, and hold every number that is quoted to what is recorded."""
    session.install("--editable", ".")
    session.run("pytest", "--prereg", "--prereg-verify", "--prereg-locked", *session.posargs)
    session.run("pytest-prereg", "cite", "--check")


@nox.session(python=OLDEST)
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error. Then show what the changelog would say."""
    session.install("--editable", ".", *group("docs"))
    session.run("sphinx-build", "--fail-on-warning", "--nitpicky", "docs", "docs/_build/html")
    session.run("towncrier", "build", "--draft")


@nox.session(python=PYTHONS)
def build(session: nox.Session) -> None:
    """Build sdist and wheel, and test the wheel as a user gets it."""
    dist = Path(session.create_tmp()) / "dist"
    session.install(*group("build"), *group("tests"))
    session.run("python", "-m", "build", "--outdir", str(dist))
    session.run("twine", "check", "--strict", *map(str, dist.iterdir()))
    wheel = max(dist.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    session.install("--force-reinstall", "--no-deps", str(wheel))
    session.install(str(wheel))
    session.run("pytest", *session.posargs)


@nox.session(python=OLDEST)
def benchmarks(session: nox.Session) -> None:
    """Print the speed tables, side by side with what a user would pick instead."""
    session.install("--constraint", CONSTRAINTS, "--editable", ".[torch]")
    session.run("python", "benchmarks/run.py", *session.posargs)
