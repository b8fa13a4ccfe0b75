"""One run of a storm: a study, the sessions that are started on it, and what has to hold in the end."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from real_study import complaints, plain_environment, wait_until
from storm_study import ARMS, PER_ARM, REPEATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storm_study import StormStudy

FAULTS_ALLOWED = 2
"""More of them, of seven blocks, and nothing is decided."""

AUDIT = Path(__file__).with_name("storm_audit.py")
Process = subprocess.Popen[str]


class Storm:
    """One study, one fault, and whatever happened to it."""

    def __init__(self, study: StormStudy, chance: random.Random) -> None:
        self.study = study
        self.chance = chance
        self.moments = random.Random(chance.randrange(10**9))
        """By themselves, so that what a seed draws does not depend on how fast the machine is."""
        self.clone = "a"
        self.may_lose = 0
        """Repeats that were in flight when the fault struck."""
        self.unnamed_changes = 0
        """Changes of a file that nothing names yet, so that nobody can notice them."""
        self.changes = 0
        """Changes that had to be noticed, and were."""
        self.same_values = True
        """Whether every clone measures what an undisturbed run does."""
        self.integrity = False
        """Whether two clones measured different things."""
        self.what: list[str] = []
        """What was drawn, for people."""
        self.variables = {"XDG_CACHE_HOME": f"{study.path}.cache"}
        self._labels = 0

    # Sessions

    def start(self, *arguments: str, **variables: str) -> Process:
        """Starts ``pytest --prereg`` under a label of its own."""
        self._labels += 1
        label = f"{self.clone}:{self._labels}"
        return self.study.start(*arguments, STORM_SESSION=label, **{**self.variables, **variables})

    def go(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs a session to its end; nobody may be shown a traceback."""
        return self.end(self.start(*arguments, **variables))

    def end(self, process: Process) -> tuple[int, str]:
        output, _ = process.communicate(timeout=120)
        assert not list(complaints(output)), output
        assert not re.search(r"^E  ", output, re.MULTILINE), output  # pytest's way to show an exception
        return process.returncode, output

    def kill(self, process: Process) -> None:
        """Kills a session as no program can prevent; what it was measuring may be lost."""
        process.kill()
        process.communicate()
        wait_until(lambda: not self.study.processes(), what="all to die")

    def interrupt(self, process: Process) -> tuple[int, str]:
        with suppress(ProcessLookupError):
            process.terminate()
        return self.end(process)

    def partly(self, *, killed: bool, **variables: str) -> None:
        """Measures some of the repeats, and is cut short."""
        process = self.start(**variables)
        self.after_a_few(process, "returned")
        self.may_lose += 1
        (self.kill if killed else self.interrupt)(process)

    @contextmanager
    def in_clone(self, clone: str, study: StormStudy) -> Iterator[None]:
        """Everything happens in another clone for a while."""
        before = self.clone, self.study
        self.clone, self.study = clone, study
        try:
            yield
        finally:
            self.clone, self.study = before

    # Moments

    def after_a_few(self, process: Process, event: str = "began") -> None:
        """Waits until some of the repeats that are missing have begun, or returned, and a moment longer."""
        before, missing = len(self.log(event)), REPEATS - self.kept()
        enough = before + self.moments.randint(1, max(1, missing - 2))
        wait_until(lambda: len(self.log(event)) >= enough or process.poll() is not None, what="a repeat")
        time.sleep(self.moments.uniform(0, 0.08))

    def at_any_moment(self, process: Process) -> None:
        """One time in five while pytest starts, else in or between repeats."""
        if self.moments.random() < 0.2:
            time.sleep(self.moments.uniform(0, 0.8))
        else:
            self.after_a_few(process)

    # What is there

    def log(self, event: str) -> list[dict[str, Any]]:
        """What the experiment has said, in order."""
        if not self.study.witness.exists():
            return []
        lines = map(json.loads, self.study.witness.read_text().splitlines())
        return [line for line in lines if line["event"] == event]

    def kept(self) -> int:
        """How many slots have a result."""
        return len([line for line in self.study.lines("work") if line.get("outcome") == "ok"])

    @property
    def folder(self) -> Path:
        return self.study.path / "experiments" / "evidence" / "work"

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.study.path,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Evidence")

    def audit(self) -> dict[str, Any]:
        """What an independent script finds."""
        command = [sys.executable, "-I", AUDIT, self.folder, self.study.witness, self.study.path]
        done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # The end

    def finish(self, reference: dict[str, Any]) -> dict[str, Any]:
        """The same command once more has to complete the series, with the verdict of an undisturbed run."""
        record = self.judged()
        wait_until(lambda: not self.study.processes(), what="all to stop")
        found = self.audit()
        self._check_evidence(found)
        self._check_verdict(record, found, reference)
        self._check_again(record)
        return self._report(found)

    def _check_evidence(self, found: dict[str, Any]) -> None:
        for what in ("altered", "unnamed", "beyond", "values", "invented", "bought_twice", "order"):
            assert found[what] == [], (what, found)
        assert found["in_flight"] <= self.may_lose, found
        assert Counter(found["settled"]) + Counter(found["given_up"]) == dict.fromkeys(ARMS, PER_ARM), found

    def _check_verdict(
        self, record: dict[str, Any], found: dict[str, Any], reference: dict[str, Any]
    ) -> None:
        faults = sum(found["outcomes"].get(outcome, 0) for outcome in ("infrastructure", "None"))
        expected = ("inconclusive", "infrastructure") if faults > FAULTS_ALLOWED else ("supported", None)
        decided = record["verdict"], record["reason"]
        if found["disputed"]:
            assert "disputed" in record["flags"] or decided == ("inconclusive", "integrity"), record
        else:
            assert decided == expected, (record, found)
        if self.integrity:
            assert decided == ("inconclusive", "integrity"), record
        if self.same_values and not found["given_up"]:
            same = ("estimate", "interval", "n", "planned", "series")
            assert {key: record[key] for key in same} == {key: reference[key] for key in same}
        assert record["sessions"] == [path.name for path in self.files() if path.stat().st_size], record

    def _check_again(self, record: dict[str, Any]) -> None:
        """In some runs: what is committed is judged as it was, and nothing is begun."""
        if self.chance.random() < 0.7:
            return
        self.commit()
        begun = len(self.log("began"))
        assert self.judged("--prereg-verify") == record
        assert len(self.log("began")) == begun

    def judged(self, *arguments: str) -> dict[str, Any]:
        """The record of a session that has to succeed."""
        records = self.study.path.with_name("records.json")
        status, output = self.go(*arguments, f"--prereg-json={records}")
        assert status == 0, output
        (record,) = json.loads(records.read_text())["predictions"]
        return record

    def _report(self, found: dict[str, Any]) -> dict[str, Any]:
        kept = ("in_flight", "returned_in_flight", "bought_twice", "begun", "files", "outcomes")
        return {
            "what": ", ".join(self.what),
            "sessions": self._labels,
            "changes": self.changes,
            "unnamed": self.unnamed_changes,
            **{key: found[key] for key in kept},
        }

    # A change that somebody makes

    def notices(self, change: Callable[[], None], restore: Callable[[], None]) -> None:
        """A change of evidence is told by every command, and nothing is bought on top of it."""
        change()
        assert self.audit()["altered"], "the storm changed nothing"
        begun, before = len(self.log("began")), self.study.files("work")
        for arguments in self.chance.sample([(), ("--prereg-verify",)], 2):
            status, output = self.go(*arguments)
            assert status != 0, output
            assert "PR207" in output, output
            assert "1 supported" not in output, output
        assert len(self.log("began")) == begun, "something was bought on top of altered evidence"
        assert self.study.files("work") == before
        restore()
        self.changes += 1


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def below(storm: Storm, process: Process) -> dict[str, int]:
    """Pids of a session's processes while it measures, by what they are; some may be gone already."""
    wait_until(lambda: storm.log("began") or process.poll() is not None, what="a repeat")
    with suppress(OSError, IndexError):
        body = storm.log("began")[-1]["pid"]
        supervisor = parent(body)
        found = {"body": body, "supervisor": supervisor, "server": parent(supervisor), "pytest": process.pid}
        if os.getpgid(found["server"]) != os.getpgid(process.pid) and parent(found["server"]) == process.pid:
            return found
    return {"pytest": process.pid}


def herd(storm: Storm, process: Process) -> dict[str, int]:
    """As :func:`below`, in a moment in which all four are there; only pytest if it has ended."""
    while process.poll() is None:
        found = below(storm, process)
        if len(found) > 1:
            return found
        time.sleep(0.002)
    return {"pytest": process.pid}
