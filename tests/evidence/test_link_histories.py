"""Whatever the history of a study and whatever is done to its files: what later sessions saw is noticed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from evidence_samples import header, started
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_prereg.evidence.lines import digest, encode
from pytest_prereg.evidence.model import Footer
from pytest_prereg.evidence.sessions import check_links, known_digests, read_session

EXPERIMENTS = ["gate-a", "barrier", "serve"]
STEPS = st.tuples(st.sampled_from(["begin", "append", "append", "end", "tear"]), st.sampled_from(EXPERIMENTS))
DEEDS = ["remove", "flip", "cut", "grow"]


class History:
    """A folder of session files, and what each of them saw of the others when it was begun."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, Path] = {}
        self.seen: dict[str, dict[str, int]] = {}
        self.count = 0

    def paths(self) -> dict[str, Path]:
        return {f"{path.parent.name}/{path.name}": path for path in sorted(self.folder.glob("*/*.jsonl"))}

    def problems(self) -> list[str]:
        """Names of the files that a problem is told of."""
        files = [read_session(path) for path in self.paths().values()]
        return ["/".join(Path(problem.path).parts[-2:]) for problem in check_links(files)]

    def take(self, step: str, experiment: str) -> None:
        path = self.running.get(experiment)
        if step == "begin":
            self.begin(experiment)
        elif path is not None:
            self.append(path, step)
            if step != "append":
                del self.running[experiment]

    def begin(self, experiment: str) -> None:
        """A session that was running before was killed."""
        self.count += 1
        before = self.paths()
        known = known_digests([read_session(path) for path in before.values()])
        path = self.folder / experiment / f"{self.count:03}.jsonl"
        path.parent.mkdir(exist_ok=True)
        head = header(experiment=experiment, session=str(self.count), known=known)
        path.write_bytes(encode(head))
        self.running[experiment] = path
        self.seen[f"{experiment}/{path.name}"] = {name: whole(each) for name, each in before.items()}

    def append(self, path: Path, step: str) -> None:
        body = path.read_bytes()
        line = encode(started(body.count(b"\n")))
        endings = {
            "append": line,
            "tear": line[:9],
            "end": encode(Footer(lines=body.count(b"\n"), digest=digest(body), ended="finished")),
        }
        path.write_bytes(body + endings[step])


def whole(path: Path) -> int:
    """Length up to the last whole line."""
    return path.read_bytes().rfind(b"\n") + 1


def tamper(draw: Any, path: Path) -> int:
    """Do something to a file; return from which byte on it is not what it was."""
    deed = draw(st.sampled_from(DEEDS))
    data = bytearray(path.read_bytes())
    place = draw(st.integers(0, len(data) - 1))
    if deed == "remove":
        path.unlink()
        return 0
    if deed == "flip":
        data[place] ^= draw(st.integers(1, 255))
    elif deed == "cut":  # to an older version of itself, or in the middle of a line
        place = draw(st.sampled_from([place, data.rfind(b"\n", 0, place) + 1]))
        del data[place:]
    else:
        place = data.rfind(b"\n") + 1
        data[place:] = encode(started(99))
    path.write_bytes(data)
    return place


@given(st.lists(STEPS, min_size=2, max_size=25), st.data())
@settings(max_examples=150, deadline=None)
def test_what_a_session_saw_can_neither_vanish_nor_change_unnoticed(steps, data):
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        for step in [("begin", "gate-a"), *steps]:
            history.take(*step)
        assert history.problems() == []

        paths = history.paths()
        chosen = data.draw(st.lists(st.sampled_from(sorted(paths)), min_size=1, max_size=4, unique=True))
        heads = {name: paths[name].read_bytes().index(b"\n") for name in chosen}
        changed = {name: tamper(data.draw, paths[name]) for name in chosen}

        told = history.problems()
        witnesses = [seen for name, seen in history.seen.items() if name not in changed]
        harmed = {
            name for name, place in changed.items() if any(place < seen.get(name, 0) for seen in witnesses)
        }
        experiments = {name.partition("/")[0] for name in told}
        assert {name.partition("/")[0] for name in harmed} <= experiments
        if all(place > heads[name] or not paths[name].exists() for name, place in changed.items()):
            assert set(told) <= set(changed)


@given(st.lists(STEPS, min_size=2, max_size=25), st.data())
@settings(max_examples=50, deadline=None)
def test_a_session_that_had_ended_can_not_go_on_unnoticed(steps, data):
    """A repeat that was lost would get the value that pleases."""
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        for step in [("begin", "gate-a"), *steps, ("begin", "gate-a")]:
            history.take(*step)
        paths = history.paths()
        older = [name for name in sorted(paths) if name.startswith("gate-a/")][:-1]
        name = data.draw(st.sampled_from(older))
        body = paths[name].read_bytes()
        paths[name].write_bytes(body[: body.rfind(b"\n") + 1] + encode(started(99)))

        assert history.problems() == [name]
