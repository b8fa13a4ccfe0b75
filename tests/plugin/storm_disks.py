"""Faults of filesystems: full ones, and such as can't be written to. All are real, and mounted for one run."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storm_sessions import Storm

CHUNK = bytes(1 << 16)
LARGEST = 16 << 20


def full_evidence(storm: Storm) -> None:
    """The disk with the evidence fills up while a session measures."""
    where = storm.study.path / "experiments" / "evidence"
    _mount(storm, where)
    # Lines that are longer than what is left of a block can be torn.
    process = storm.start(STORM_PADDING=storm.chance.choice(["0", "400"]))
    storm.at_any_moment(process)
    storm.may_lose = 1
    left = storm.chance.choice([0, 1, 300, 2000, 900_000])
    storm.what.append(f"{left} bytes left")
    with _filled(where, left):
        _refused_or_done(storm, *storm.end(process))
        _refused_or_done(storm, *storm.go())


def full_elsewhere(storm: Storm) -> None:
    """The disk for temporary files or for the lock is full, or has no room for one more file."""
    git, temporary = storm.study.path / ".git" / "pytest-prereg", storm.study.temporary
    where = storm.chance.choice([git, temporary])
    option = storm.chance.choice(["size=1m", "size=1m,nr_inodes=20"])
    storm.what.append(f"{where.name} {option}")
    storm.may_lose = 7
    _tmpfs(where, option)
    process = storm.start() if storm.chance.random() < 0.5 else None
    if process:
        storm.after_a_few(process)
    with _filled(where, 0):
        if process:
            storm.end(process)
        else:
            storm.what.append("before it began")
            storm.go()


def read_only(storm: Storm) -> None:
    """The disk with the evidence can only be read: from one session to the next, or from one line to the next."""
    where = storm.study.path / "experiments" / "evidence"
    if _has_loop() and storm.chance.random() < 0.5:
        storm.what.append("in a session, as after a disk error")
        image = _ext4(storm, where)
        process = storm.start()
        storm.after_a_few(process)
        storm.may_lose = 1
        _do("mount", "-o", "remount,abort", where)
        _refused_or_done(storm, *storm.end(process))
        _do("umount", where)
        subprocess.run(["fsck.ext4", "-p", image], capture_output=True, check=False)
        _do("mount", "-o", "loop", image, where)
        return
    storm.what.append("between sessions")
    _mount(storm, where)
    storm.partly(killed=storm.chance.random() < 0.5)
    _do("mount", "--bind", where, where)
    _do("mount", "-o", "remount,bind,ro", where)
    _nothing_begins(storm)
    _do("umount", where)


def read_only_folder(storm: Storm) -> None:
    """Some folder loses its permission to be written to, before, between or in sessions."""
    storm.study.temporary.mkdir()
    experiments, git = storm.study.path / "experiments", storm.study.path / ".git"
    when = storm.chance.choice(["first", "between", "meanwhile"])
    process = None
    (experiments / "evidence" / "work").mkdir(parents=True)
    if when == "between":
        storm.partly(killed=storm.chance.random() < 0.5)
    elif when == "meanwhile":
        process = storm.start()
        storm.after_a_few(process)
    lock = git / "pytest-prereg"
    lock.mkdir(exist_ok=True)
    evidence = experiments / "evidence"
    where = storm.chance.choice([evidence / "work", evidence, lock, lock, git, storm.study.temporary])
    storm.what.append(f"{where.name} {when}")
    mode = where.stat().st_mode
    where.chmod(0o500)
    try:
        if process:
            _second_session(storm)
            status, output = storm.end(process)
            assert status == 0, output
        else:
            _refused_or_done(storm, *storm.go())
    finally:
        where.chmod(mode)


def _second_session(storm: Storm) -> None:
    """Another session beside one that measures finds nothing to do, or is turned away."""
    _, output = storm.go()
    assert "PR120" in output or "PR121" in output or "1 supported" in output, output


def _refused_or_done(storm: Storm, status: int, output: str) -> None:
    """A session that could not write says so and does not succeed; one that could has its verdict."""
    if status == 0:
        assert "1 supported" in output, output
    else:
        assert "PR121" in output or "PR120" in output, output


def _nothing_begins(storm: Storm) -> None:
    begun = len(storm.log("began"))
    status, output = storm.go()
    assert status != 0, output
    assert "PR121" in output, output
    assert "Read-only file system" in output, output
    assert len(storm.log("began")) == begun


# Mounts


def _mount(storm: Storm, where: Path) -> None:
    if _has_loop() and storm.chance.random() < 0.5:
        _ext4(storm, where)
    else:
        storm.what.append("tmpfs")
        _tmpfs(where, "size=4m")


def _tmpfs(where: Path, option: str) -> None:
    where.mkdir(parents=True, exist_ok=True)
    _do("mount", "-t", "tmpfs", "-o", option, "tmpfs", where)


def _ext4(storm: Storm, where: Path) -> Path:
    storm.what.append("ext4")
    image = storm.study.path.with_name("disk")
    os.truncate(os.open(image, os.O_CREAT | os.O_WRONLY), 8 << 20)
    where.mkdir(parents=True, exist_ok=True)
    _do("mkfs.ext4", "-q", "-b", "1024", image)
    _do("mount", "-o", "loop", image, where)
    (where / "lost+found").rmdir()
    return image


def _has_loop() -> bool:
    """Whether an image can be mounted: by the machine's own root only, and not everywhere."""
    done = (
        subprocess.run(["losetup", "--find"], capture_output=True, check=False) if os.geteuid() == 0 else None
    )
    is_mapped = Path("/proc/self/uid_map").read_text().split()[2] == "1"
    return done is not None and done.returncode == 0 and not is_mapped


def _do(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)


@contextmanager
def _filled(where: Path, left: int) -> Iterator[None]:
    """Lets a filesystem have only ``left`` bytes of room, and not one file more if they are none."""
    room = os.statvfs(where)
    assert room.f_blocks * room.f_frsize <= LARGEST, "only a filesystem of our own is filled"
    filler = where / "filler"
    filler.mkdir()
    with suppress(OSError), (filler / "bytes").open("ab", buffering=0) as stream:
        while True:
            stream.write(CHUNK)
    if left:
        size = (filler / "bytes").stat().st_size
        os.truncate(filler / "bytes", size - left)
    else:
        with suppress(OSError):
            for number in range(5000):
                (filler / str(number)).touch()
    try:
        yield
    finally:
        subprocess.run(["rm", "-r", filler], check=True)
