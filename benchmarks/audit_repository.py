"""A repository as a study leaves one behind: registrations, amendments, evidence, verdicts, and much else.

Written through ``git fast-import``, with a fixed seed for all but names and dates. Every file of evidence was
measured at a commit that has its registration, some on branches that were merged; beside the study lie source
files and another tool's lock.
"""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.evidence.links import known_digests
from pytest_prereg.evidence.model import Finished, Header, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.evidence.writing import write_session
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.recording import recorded_entry
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import Lock, amend, plan_registration, register, render_lock
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.sources import source_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.model import Study

SEED = 5
REPEATS = 7
FOLDERS, FILES = 40, 300
"""Of ordinary source."""
LINES, TOUCHED = 60, 3
"""Of a source file; source files that a commit changes at most."""
TOGETHER = 5
"""Predictions that are registered, or whose verdicts are recorded, in one commit."""
CYCLE, FORKS, TURNS, MERGES = 25, 10, 13, 14
"""Of so many commits these begin a branch, go on without it, and merge it."""
TOML, LOCK, OTHER_LOCK = "predictions.toml", "predictions.lock", "uv.lock"
UPGRADES, PACKAGES = 100, 300
"""Commits to each that changes the other tool's lock; packages in that."""

MODULE = "experiments/bench.py"
FIXTURE = b"""\
from pytest_prereg import Repeat, experiment


@experiment(metrics={"wall": "s"})
def case(repeat: Repeat, *, number: int) -> None:
    with repeat.timer("wall"):
        sorted(range(number))
"""
EXPERIMENT = """
[experiments.e{number:03}]
fixture = "case"
params  = {{ number = {number} }}
repeats = {repeats}

[predictions.p{number:03}]
claim      = "Case {number} takes at most a second."
experiment = "e{number:03}"
quantity   = "wall"
predicts   = "<= {edge} s"
falsifier  = "> 1.5 s"
"""


class Change(NamedTuple):
    """Files that one commit of the study brings in, by path."""

    message: str
    files: Mapping[str, bytes]


class Importer:
    """Feeds ``git fast-import``; commits are known by their marks."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
        command = ["git", "fast-import", "--quiet", "--date-format=raw", "--cat-blob-fd=1"]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.mark = 0

    def commit(
        self, message: str, files: Mapping[str, bytes], parent: int | None, merged: int | None = None
    ) -> int:
        """Commits files on top of a parent, and returns the mark."""
        self.mark += 1
        who = f"A <a@example.invalid> {1_700_000_000 + 600 * self.mark} +0000"
        lines = [f"commit refs/fast/{self.mark}", f"mark :{self.mark}", f"committer {who}"]
        self.write("\n".join(lines) + "\n")
        self.data(message.encode())
        self.write(f"from :{parent}\n" if parent else "")
        self.write(f"merge :{merged}\n" if merged else "")
        for path, content in files.items():
            self.write(f"M 100644 inline {path}\n")
            self.data(content)
        self.write("\n")
        return self.mark

    def name(self, mark: int) -> str:
        """The commit's name."""
        self.write(f"get-mark :{mark}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().strip()

    def close(self, mark: int) -> None:
        """Ends with ``main`` at a commit."""
        self.write(f"reset refs/heads/main\nfrom :{mark}\n\n")
        self.process.communicate()
        assert self.process.returncode == 0

    def data(self, content: bytes) -> None:
        self.write(f"data {len(content)}\n")
        self.process.stdin.write(content + b"\n")

    def write(self, text: str) -> None:
        self.process.stdin.write(text.encode())


class Source:
    """Ordinary files that most commits are about."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        paths = [f"src/part{number % FOLDERS:02}/module{number:03}.py" for number in range(FILES)]
        self.lines = {path: [self.line() for _ in range(LINES)] for path in paths}
        self.packages = [self.package(number) for number in range(PACKAGES)]

    def line(self) -> bytes:
        return b"value_%08x = compute(%d)" % (self.chance.getrandbits(32), self.chance.randrange(10**6))

    def package(self, number: int) -> bytes:
        version, digest = self.chance.randrange(100), self.chance.getrandbits(256)
        return b'[[package]]\nname = "package%d"\nversion = "1.%d"\nhash = "sha256:%064x"\n' % (
            number,
            version,
            digest,
        )

    def all(self) -> dict[str, bytes]:
        """Every file as it is now."""
        files = {path: b"\n".join(lines) + b"\n" for path, lines in self.lines.items()}
        return {**files, OTHER_LOCK: b"\n".join(self.packages)}

    def change(self, number: int) -> dict[str, bytes]:
        """What an ordinary commit changes."""
        if number % UPGRADES == UPGRADES // 2:
            which = self.chance.randrange(PACKAGES)
            self.packages[which] = self.package(which)
            return {OTHER_LOCK: b"\n".join(self.packages)}
        paths = self.chance.sample(sorted(self.lines), self.chance.randint(1, TOUCHED))
        for path in paths:
            self.lines[path][self.chance.randrange(LINES)] = self.line()
        return {path: b"\n".join(self.lines[path]) + b"\n" for path in paths}


class StudyChanges:
    """What the study brings in, one commit after the other."""

    def __init__(self, folder: Path, predictions: int, chance: random.Random) -> None:
        self.folder = folder
        self.predictions = predictions
        self.chance = chance
        self.lock: Lock | None = None
        self.sessions: list[SessionFile] = []

    @property
    def count(self) -> int:
        """How many commits there will be."""
        return 2 * -(-self.predictions // TOGETHER) + self.predictions // 10 + self.predictions

    def all(self, before: Iterator[str]) -> Iterator[Change]:
        """Registrations, amendments, evidence, verdicts; ``before`` gives the commit that is built upon."""
        yield from self.registrations()
        yield from self.amendments()
        study = load_study(self.folder / TOML)
        for number in range(self.predictions):
            yield self.evidence(study, number, next(before))
        yield from self.verdicts(study)

    def registrations(self) -> Iterator[Change]:
        for last in range(TOGETHER, self.predictions + TOGETHER, TOGETHER):
            count = min(last, self.predictions)
            study = self.written(count, amended=0)
            self.lock = register(study, self.lock, plan_registration(study, self.lock))
            yield self.committed(f"Register up to p{count - 1:03}")

    def amendments(self) -> Iterator[Change]:
        for amended in range(1, self.predictions // 10 + 1):
            study = self.written(self.predictions, amended=amended)
            self.lock = amend(self.lock, study, [f"p{amended - 1:03}"], "The old machine is gone.")
            yield self.committed(f"Amend p{amended - 1:03}")

    def evidence(self, study: Study, number: int, head: str) -> Change:
        header = self.header(study, number, head)
        path = write_session(study.evidence_folder, header, list(self.lines(header)))
        self.sessions.append(read_session(path))
        return Change(f"Measure e{number:03}", {path.relative_to(self.folder).as_posix(): path.read_bytes()})

    def header(self, study: Study, number: int, head: str) -> Header:
        experiment = study.experiments[f"e{number:03}"]
        prediction = study.predictions[f"p{number:03}"]
        digest = registration_digest(study, prediction)
        return Header(
            version=1,
            study=study.id,
            experiment=experiment.id,
            series=1,
            origin="measured",
            planned=experiment.planned,
            pairing=experiment.pairing,
            seed=seed_base([digest], 1),
            source=source_digest(study, experiment),
            predictions={prediction.id: digest},
            head=head,
            dirty=False,
            session=f"{self.chance.getrandbits(64):016x}",
            created="2026-08-01T12:00:00Z",
            executor="local",
            environment={"cpu": "Fast CPU", "cores": 64, "gpu": ["H200"], "driver": "550.54.15"},
            versions={"python": "3.11.9", "pytest-prereg": "0.1.0"},
            known=known_digests(self.sessions),
        )

    def lines(self, header: Header) -> Iterator[Started | Finished]:
        for index in range(1, REPEATS + 1):
            repeat = repeat_id(header.experiment, header.series, ONLY_ARM, index)
            wall = 0.8 + 0.02 * self.chance.random()
            yield Started(repeat=repeat, arm=ONLY_ARM, index=index, attempt=1, block=index, seed=index)
            yield Finished(
                repeat=repeat,
                attempt=1,
                outcome=Outcome.OK,
                values={"wall": wall},
                seconds={"launch": 0.01, "body": wall, "total": wall + 0.02},
                machine="Fast CPU | H200 | 550",
                environment={"load_average": 0.4, "gpu_clock_mhz": 1980, "gpu_temp_c": 41},
            )

    def verdicts(self, study: Study) -> Iterator[Change]:
        (self.folder / LOCK).write_text(render_lock(self.lock), encoding="utf-8")
        state = StudyState(study)
        entries = dict(self.lock.predictions)
        names = sorted(entries)
        for first in range(0, len(names), TOGETHER):
            for name in names[first : first + TOGETHER]:
                entries[name] = recorded_entry(state.assess(study.predictions[name]), entries[name])
            self.lock = replace(self.lock, predictions=dict(entries))
            yield self.committed(f"Record from {names[first]}")

    def written(self, count: int, amended: int) -> Study:
        """The study with so many predictions, some of them as they were amended."""
        tables = (
            EXPERIMENT.format(number=number, repeats=REPEATS, edge=1.0 if number < amended else 0.9)
            for number in range(count)
        )
        path = self.folder / TOML
        path.write_text('[study]\nid = "long-lived"\n' + "".join(tables), encoding="utf-8")
        return load_study(path)

    def committed(self, message: str) -> Change:
        toml = (self.folder / TOML).read_bytes()
        return Change(message, {TOML: toml, LOCK: render_lock(self.lock).encode()})


def build(folder: Path, commits: int, predictions: int = 200) -> None:
    """A repository with that many commits on HEAD's ancestry, checked out and packed.

    Raises:
        ValueError: The study alone would take more.
    """
    chance = random.Random(SEED)
    source, study = Source(chance), StudyChanges(folder, predictions, chance)
    places = [number for number in range(1, commits) if number % CYCLE not in (TURNS, MERGES)]
    if study.count > len(places):
        raise ValueError(f"commits: {commits} are too few for {predictions} predictions")
    step = len(places) / study.count
    turns = {places[int(index * step)] for index in range(study.count)}
    importer = Importer(folder)
    tip = _write(importer, source, study, commits, turns)
    importer.close(tip)
    for arguments in (["reset", "--quiet", "--hard", "main"], ["repack", "-a", "-d", "--quiet"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


def _write(importer: Importer, source: Source, study: StudyChanges, commits: int, turns: set[int]) -> int:
    """Writes all commits and returns the last one; every now and then some go to a branch that is merged."""
    (study.folder / MODULE).parent.mkdir()
    (study.folder / MODULE).write_bytes(FIXTURE)
    main = importer.commit("Begin", {**source.all(), MODULE: FIXTURE}, None)
    side: int | None = None
    branched: dict[str, bytes] = {}
    changes = study.all(importer.name(tip) for tip in iter(lambda: side or main, None))
    for number in range(1, commits):
        place = number % CYCLE
        if place == MERGES and side:
            main, side, branched = importer.commit("Merge", branched, main, side), None, {}
            continue
        if number in turns:
            message, files = next(changes)
        else:
            message, files = f"Change {number}", source.change(number)
        if FORKS <= place < TURNS and number + MERGES - place < commits:
            side = importer.commit(message, files, side or main)
            branched |= files
        else:
            main = importer.commit(message, files, main)
    assert next(changes, None) is None
    return main
