"""Studies beside each other share their Markdown: whose a citation is."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pytest_prereg.audit.citing.quotable import CODE
from pytest_prereg.audit.citing.references import STUDY
from pytest_prereg.registry.load import find_studies, load_study
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.citing.references import Reference
    from pytest_prereg.registry.model import Study


def common_folder(study: Study) -> Path:
    """Return the folder that a study's Markdown is in: of ``predictions/NAME.toml`` the one above."""
    return study.folder.parent if study.folder.name == "predictions" else study.folder


class Neighbours:
    """A study and those beside it; the others are read when a citation may be theirs."""

    def __init__(self, state: StudyState) -> None:
        self.study = state.study
        self.registered = frozenset(state.lock.predictions) if state.lock else frozenset()

    def is_own(self, reference: Reference) -> bool:
        """Return whether a citation is of this study, and not of one beside it.

        Raises:
            RefusedError: PR210, it names a study that is not there, or could mean one of several.
            StudyError: A study beside this one can't be read.
        """
        if reference.study is not None:
            return self._is_named(reference.study)
        having = [name for name, ids in self._others.items() if reference.is_total or reference.id in ids]
        own = reference.is_total or reference.id in {*self.study.predictions, *self.registered}
        if len(having) + own > 1:
            names = sorted([*having, *([self.study.id] if own else [])])
            message = f"{quoted(reference.id)} may be of {listed(names, 'or')}"
            if reference.id == STUDY:
                message = f"there are several studies: {listed(names)}"
            raise RefusedError(
                CODE, message, f"Say which: <!-- prereg: {names[0]}:{reference.id}.{reference.field} -->"
            )
        return own or not having

    def _is_named(self, name: str) -> bool:
        if name == self.study.id:
            return True
        if name not in self._others:
            hint = suggestion(name, [self.study.id, *self._others], "there are")
            raise RefusedError(CODE, f"there is no study {quoted(name)}{hint}")
        return False

    @cached_property
    def _others(self) -> dict[str, frozenset[str]]:
        """Ids of predictions by study, of all studies beside this one."""
        paths = [
            path for path in find_studies(common_folder(self.study)) if not path.samefile(self.study.path)
        ]
        studies = [load_study(path) for path in paths]
        return {study.id: frozenset(study.predictions) for study in studies}
