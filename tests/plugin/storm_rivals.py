"""Faults that are other people: two sessions at once, two clones, and git in another terminal."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from real_study import plain_environment

if TYPE_CHECKING:
    from storm_sessions import Storm


def two_sessions(storm: Storm) -> None:
    """A second session in the same clone, with a folder for temporary files of its own or not, is turned away."""
    first = storm.start()
    if storm.chance.random() < 0.5:
        time.sleep(storm.chance.uniform(0, 0.5))
    else:
        storm.after_a_few(first)
    other = storm.study.path.with_name("other.tmp")
    other.mkdir()
    elsewhere = storm.chance.random() < 0.5
    storm.what.append("another TMPDIR" if elsewhere else "the same TMPDIR")
    second = storm.start(**({"TMPDIR": str(other)} if elsewhere else {}))
    ended = [storm.end(first), storm.end(second)]
    assert 0 in {status for status, _ in ended}, ended
    for status, output in ended:
        assert "1 supported" in output if status == 0 else "PR120" in output, output


def clones_agree(storm: Storm) -> None:
    _two_clones(storm)


def clones_disagree(storm: Storm) -> None:
    offset = storm.chance.choice(["0.25", "5"])
    storm.what.append(f"by {offset}")
    storm.same_values = False
    _two_clones(storm, STORM_OFFSET=offset)
    # With as many as that in each, two readings of the series give two verdicts.
    storm.integrity = storm.what[1:] == ["all, all"] and offset == "5"


def _two_clones(storm: Storm, **variables: str) -> None:
    """Two clones use the same series number, for some or all of its repeats, and git brings them together."""
    shared = storm.chance.random() < 0.3
    if shared:
        storm.partly(killed=storm.chance.random() < 0.5)
        storm.commit()
    parts = storm.chance.choice([("all", "all"), ("some", "all"), ("all", "some")])
    storm.what.append(f"{', '.join(parts)}{' after a first session' * shared}")
    theirs = storm.study.path.with_name("theirs")
    storm.git("clone", "--quiet", ".", str(theirs))
    for part, (clone, study) in zip(
        parts, (("a", storm.study), ("b", storm.study.clone_at(theirs))), strict=True
    ):
        with storm.in_clone(clone, study):
            storm.git("config", "user.name", "Test")
            storm.git("config", "user.email", "test@example.invalid")
            own = variables if clone == "b" else {}
            if part == "some":
                storm.partly(killed=storm.chance.random() < 0.5, **own)
            else:
                status, output = storm.go(**own)
                assert status == 0, output
            storm.commit()
    storm.git("pull", "--quiet", "--no-rebase", "--no-edit", str(theirs), "HEAD")


def another_terminal(storm: Storm) -> None:
    """Somebody commits, stashes, cleans or removes while a session measures."""
    committed = storm.chance.random() < 0.5
    if committed:
        storm.partly(killed=storm.chance.random() < 0.5)
        storm.commit()
    earlier = storm.files()
    process = storm.start()
    storm.after_a_few(process)
    commands = {
        "commit": ["git add --all && git commit -qm wip"],
        "stash": ["git stash -qu"],
        "clean": ["git clean -qfdx"],
        "remove": ["rm -r experiments/evidence"],
        "commit, reset": ["git add --all && git commit -qm wip", "git reset -q --hard HEAD~1"],
        "commit, checkout": ["git add --all && git commit -qm wip", "git checkout -q -f HEAD -- experiments"],
        "commit, stash": ["git add --all && git commit -qm wip", "git stash -qu"],
    }
    which = storm.chance.choice(list(commands))
    storm.what.append(f"{which}{' after a commit' * committed}")
    for command in commands[which]:
        subprocess.run(
            ["sh", "-c", command],
            cwd=storm.study.path,
            env=plain_environment(),
            capture_output=True,
            check=False,
        )
        time.sleep(storm.chance.uniform(0, 0.1))
    status, output = storm.end(process)
    missing = [path for path in earlier if not path.exists()]
    if missing:
        assert status != 0, output
        assert "PR207" in output, output
        storm.git("checkout", "HEAD", "--", *map(str, missing))
    else:
        assert status == 0, output
        assert "1 supported" in output, output
