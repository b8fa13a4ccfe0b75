"""What repeats printed that failed is kept where it is named, for a day; nothing else is left."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.measure.executors import scratch

if TYPE_CHECKING:
    from pathlib import Path

OLD = time.time() - scratch.KEPT_SECONDS - 60


@pytest.fixture
def above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders for temporary files are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def folder(above: Path, name: str, *files: str, changed: float = OLD) -> Path:
    made = above / name
    made.mkdir()
    for file in files:
        (made / file).write_text("said", encoding="utf-8")
    os.utime(made, (changed, changed))
    return made


@pytest.mark.parametrize("files", [("1.log",), ("3.log", "12.service.log")])
def test_old_output_is_removed_when_the_next_session_begins(above: Path, files: tuple[str, ...]):
    folder(above, "prereg-abcdefgh", *files)
    made = scratch.make()
    assert list(above.iterdir()) == [made]


@pytest.mark.parametrize(
    ("name", "files", "changed"),
    [
        ("prereg-abcdefgh", ("1.log",), time.time() - 3600),
        ("prereg-abcdefgh", ("1.log", "server.log"), OLD),
        ("prereg-abcdefgh", ("1.log", "notes.txt"), OLD),
        ("prereg-abcdefgh", (), OLD),
        ("prereg-versions-abcd", ("tree",), OLD),
        ("others", ("1.log",), OLD),
    ],
)
def test_nothing_else_is(above: Path, name: str, files: tuple[str, ...], changed: float):
    there = folder(above, name, *files, changed=changed)
    scratch.make()
    assert sorted(path.name for path in there.iterdir()) == sorted(files)


def test_a_link_is_not_followed(above: Path):
    there = folder(above, "others", "1.log")
    (above / "prereg-abcdefgh").symlink_to(there)
    scratch.make()
    assert (there / "1.log").exists()
