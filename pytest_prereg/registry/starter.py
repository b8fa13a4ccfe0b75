"""The study that ``init`` writes: small, registered and measured as it stands, and there to be replaced."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.plain_files import read_plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ATTRIBUTES_FILE = Path(".gitattributes")
SCHEMA = Path(__file__).parents[1] / "predictions.schema.json"

PREDICTIONS = """\
#:schema ./predictions.schema.json
[study]
id    = "{study}"
title = "An example: does order help sorting?"

[experiments.sorting]
fixture = "sorting"                   # the function in experiments/example.py
params  = {{ length = 200_000 }}
repeats = 10                          # of each arm, each in a process of its own
[experiments.sorting.arms]
sorted   = {{ shuffle = false }}
shuffled = {{ shuffle = true }}

[predictions.order-helps]
claim      = "Sorting a list that is in order already takes at most half of the time."
experiment = "sorting"
contrast   = "sorted / shuffled"      # inside each block of one repeat per arm
quantity   = "t_sort"
predicts   = "<= 0.5"
falsifier  = ">= 0.8"                 # what lies between stays undecided
expected   = 0.1                      # for the power check
cv         = 0.2
data-seen  = "pilot"                  # it may be tried before it is registered
"""

EXPERIMENT = '''\
"""What the predictions are about: code that is run once per repeat, in a fresh process."""

import random

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t_sort": "s"})
def sorting(repeat: Repeat, *, length: int = 200_000, shuffle: bool = True) -> None:
    """Sort a list of numbers, shuffled or in order."""
    numbers = list(range(length))
    if shuffle:
        random.Random(repeat.seed).shuffle(numbers)
    with repeat.timer("t_sort"):
        sorted(numbers)
'''


ATTRIBUTES = """\
# Locks are merged by prediction, in each clone that was told to: pytest-prereg init --merge-driver
predictions*.lock text eol=lf merge=pytest-prereg
predictions/*.lock text eol=lf merge=pytest-prereg
# Evidence is kept to the byte, whatever line endings a clone asks for: its digests are of bytes.
**/experiments/evidence/** -text
"""


def starter_files(folder: Path, taken: Collection[object] = ()) -> dict[Path, str]:
    """Return what ``init`` writes into ``folder``, by path relative to it; no id of a study is ``taken``."""
    return {
        Path("predictions.toml"): PREDICTIONS.format(study=study_id(folder, taken)),
        Path("experiments", "example.py"): EXPERIMENT,
        Path(SCHEMA.name): SCHEMA.read_text(encoding="utf-8"),
    }


def study_id(folder: Path, taken: Collection[object] = ()) -> str:
    """Return an id for the study of ``folder``: its name as an id is spelt, or ``example``.

    Where another study has that, the names of the folders above come before it, as many as it takes.
    """
    whole = folder.resolve()
    names = [_spelt(each.name) for each in (whole, *whole.parents)]
    parts = [names[0] or "example", *filter(None, names[1:])]
    longer = ("-".join(reversed(parts[:count])) for count in range(1, len(parts) + 1))
    numbered = (f"{parts[0]}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(longer, numbered) if name not in taken)


def _spelt(name: str) -> str:
    """A folder's name as an id is spelt; empty where none of it can stay."""
    return "-".join(re.findall(r"[a-z0-9_]+", name.lower())).strip("_-")


def write_starter(folder: Path, taken: Collection[object] = ()) -> list[Path]:
    """Write the files of the starter into ``folder`` and return their paths relative to it.

    Args:
        folder: Where they are to be.
        taken: Ids that other studies have.

    Raises:
        StudyError: PR106, if one of them is there already; then nothing is written.
        OSError: If the folder can't be written to.

    ``.gitattributes`` is the one file that may be there already: it is added to.
    """
    files = starter_files(folder, taken)
    problems = [_in_the_way(folder / path) for path in files if (folder / path).exists()]
    if problems:
        raise StudyError(problems)
    for path in files:
        (folder / path).parent.mkdir(exist_ok=True)
    for path, text in files.items():
        with (folder / path).open("x", encoding="utf-8") as stream:
            stream.write(text)
    added = [ATTRIBUTES_FILE] if add_attributes(folder) else []
    return [*files, *added]


def add_attributes(folder: Path, evidence: Iterable[str] = ()) -> bool:
    """Tell git how locks and evidence below ``folder`` are merged and kept, and return whether it was news.

    Args:
        folder: Where ``.gitattributes`` stands, or is to stand; lines that it has are never changed.
        evidence: Folders of evidence, relative to ``folder``, beside the one of every study.

    Raises:
        OSError: If the file can't be read or written.
    """
    path = folder / ATTRIBUTES_FILE
    there = read_plain(path) if path.exists() else b""
    wanted = [*ATTRIBUTES.splitlines(), *(_line_for(each) for each in evidence)]
    known = {line.strip() for line in there.splitlines()}
    missing = [line for line in wanted if line.encode() not in known]
    if all(line.startswith("#") for line in missing):
        return False
    apart = b"" if there.endswith(b"\n") or not there else b"\n"
    path.write_bytes(there + apart + "".join(f"{line}\n" for line in missing).encode())
    return True


def _line_for(folder: str) -> str:
    """A line on a folder, anchored where it stands, with what would be a sign to git's matching escaped."""
    literal = re.sub(r"([\\*?\[\]])", r"\\\1", folder)
    return f"{json.dumps(f'/{literal}/**', ensure_ascii=False)} -text"


def _in_the_way(path: Path) -> Problem:
    return Problem(
        code="PR106",
        path=str(path),
        message="is there already, and nothing was written over it",
        advice="Go on with what is there (pytest-prereg lock), or begin in another folder.",
    )
