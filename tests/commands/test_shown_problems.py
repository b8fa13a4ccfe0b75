"""Problems as they are shown: what a program said of its own accord stays readable, and acts on no terminal."""

from __future__ import annotations

from pytest_prereg.errors import Problem


def test_a_command_that_git_indents_can_be_copied():
    said = "fatal: detected dubious ownership\n\tgit config --global --add safe.directory /x"
    assert str(Problem(code="PR212", message=said)).splitlines() == [
        "PR212: fatal: detected dubious ownership",
        "    git config --global --add safe.directory /x",
    ]


def test_what_acts_on_a_terminal_is_spelt_out():
    assert str(Problem(code="PR212", message="a\x1b[31m\rb")) == "PR212: a\\x1b[31m\\rb"
