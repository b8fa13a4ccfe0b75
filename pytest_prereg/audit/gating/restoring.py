"""What to type to bring back what a pull request removed or made easier, so that its gate then passes.

A finder knows what was registered and not what else changed. Where nothing else did, git brings the files
back; else it shows what they were. An amendment stays in the lock whatever follows, so what was amended is
amended back: a lock without it would be another error.
"""

from __future__ import annotations

import shlex
import tomllib
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import typed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.gating.ends import Ends
    from pytest_prereg.audit.gating.sides import Base, Side
    from pytest_prereg.registry.lock import Lock

_GONE, _EASIER = "PR203", "PR209"
AFTERWARDS = "Once that is committed, "
"""How that part of an advice begins which can be done no earlier."""
_RECORD = f"{AFTERWARDS}record its verdict again and commit that: pytest --prereg-verify --prereg-record"
_SHORT = 8
_ANEW = "What is expected now "
"""How the last line begins of an advice about what was made easier."""


def restorable(findings: Iterable[Finding], head: Side, base: Base, ends: Ends) -> list[Finding]:
    """Return the findings, those that ask to restore what the base has with the commands for it."""
    several = list(findings)
    names = {one.id for one in several if _asks(one, head.state, base)}
    if names:
        files = _Files(head.state, base, ends, names)
        several = [
            _advised(one, head.state, base, files) if _asks(one, head.state, base) else one for one in several
        ]
    return [_anew(one, base) if one.code == _EASIER and one.level is Level.ERROR else one for one in several]


def _anew(finding: Finding, base: Base) -> Finding:
    """Return what was made easier with how that is registered which is expected now."""
    entry = base.entry(finding.id)
    if entry is None:
        return finding
    kept = [line for line in (finding.advice or "").splitlines() if not line.startswith(_ANEW)]
    follows = f', follows = "{finding.id}"' if entry.verdict == "inconclusive" else ""
    told = (
        f"{_ANEW}is another claim: a new id, an experiment of its own for new data{follows}, and data-seen = "
        '"pilot"; or "full" if these numbers are known, which is a replication and not counted '
        "(docs/studies.md, Changing your mind)."
    )
    return replace(finding, advice="\n".join([*kept, told]))


def _asks(finding: Finding, state: StudyState, base: Base) -> bool:
    """Whether a finding asks for what the base has; one that names a commit to take it from is done."""
    entry = base.entry(finding.id)
    if finding.level is not Level.ERROR or finding.untold or entry is None or entry.withdrawal is not None:
        return False
    if finding.code == _EASIER:
        return finding.id in state.study.predictions and "git checkout" not in (finding.advice or "")
    is_gone = finding.id not in state.study.predictions or not _is_locked(state, finding.id)
    return finding.code == _GONE and is_gone


def _is_locked(state: StudyState, name: str) -> bool:
    return state.lock is not None and name in state.lock.predictions


def _advised(finding: Finding, state: StudyState, base: Base, files: _Files) -> Finding:
    name = finding.id
    if finding.code == _EASIER:
        lines = [files.back(name, with_lock=False)]
        entry, before = state.lock.predictions.get(name) if state.lock else None, base.entry(name)
        if entry is not None and before is not None and entry.digest != before.digest:
            lines.append(f"Say so in the lock: pytest-prereg amend {typed(name)} --reason '…'")
            lines += [_RECORD] * bool(before.verdict)
        return replace(finding, advice="\n".join(lines))
    back = files.back(name, with_lock=not _is_locked(state, name))
    first = "If it is given up, withdraw it then" if not _is_locked(state, name) else "Or give it up"
    return replace(finding, advice=f"{back}\n{first}: pytest-prereg withdraw {typed(name)} --reason '…'")


class _Files:
    """The prediction file and its lock at both ends, and what else than some predictions changed in them."""

    def __init__(self, state: StudyState, base: Base, ends: Ends, names: Collection[str]) -> None:
        self._state, self._commit = state, ends.base[:_SHORT]
        self._before = _text(state, ends.base)
        after = state.study.path.read_text(encoding="utf-8")
        self._is_text_alone = _without(self._before, names) == _without(after, names) is not None
        self._is_lock_alone = _lock_without(base.lock, names) == _lock_without(state.lock, names)

    def back(self, name: str, *, with_lock: bool) -> str:
        """Return how a prediction is brought back: the whole files, where nothing else would be lost."""
        paths = [self._state.study.path, *([self._state.study.lock_path] if with_lock else [])]
        if self._is_text_alone and (self._is_lock_alone or not with_lock):
            return f"Put it back: git checkout {self._commit} -- {_typed(paths)}"
        table = f"[predictions.{name}]"
        lines = enumerate(self._before.splitlines(), 1)
        line = next((number for number, text in lines if text.strip() == table), None)
        where = f" ({shown(paths[0])}:{line})" if line else ""
        return (
            f"Put {table} back as {self._commit} has it{where}; other changes of the same files are to stay: "
            f"git diff {self._commit} -- {_typed(paths)}"
        )


def _text(state: StudyState, commit: str) -> str:
    """Return the prediction file as it was at its place in a commit; nothing where it was not."""
    place = state.repository and state.repository.relative(state.study.path)
    if state.repository is None or place is None:
        return ""
    return (next(state.repository.contents([f"{commit}:{place}"])) or b"").decode("utf-8", "replace")


def _without(text: str, names: Collection[str]) -> dict[str, Any] | None:
    """Return what a prediction file has beside some predictions; ``None`` where it can't be read."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    several = found.get("predictions", {})
    if not isinstance(several, dict):
        return None
    return found | {"predictions": {name: one for name, one in several.items() if name not in names}}


def _lock_without(lock: Lock | None, names: Collection[str]) -> Lock | None:
    several = lock.predictions.items() if lock else ()
    return lock and replace(lock, predictions={name: one for name, one in several if name not in names})


def _typed(paths: Iterable[Path]) -> str:
    return " ".join(shlex.quote(shown(path)) for path in paths)
