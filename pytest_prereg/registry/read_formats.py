"""Whether what commands leave behind can be read here; judging what was read needs nobody who reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem
from pytest_prereg.registry.formats import known_formats
from pytest_prereg.registry.refusals import RefusedError, quoted, suggestion
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.toml import positions_of, shown

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Study


def unreadable_format(study: Study, experiment: Experiment) -> Problem | None:
    """Return why no result of an experiment could be read here: PR136, or PR127 where a plugin is broken.

    It is asked before something is registered or measured, and by nothing else: a study is judged by those
    who have none of its plugins.
    """
    read = experiment.table.read
    refusal = _refusal(read.format) if read is not None else None
    if refusal is None:
        return None
    keys = ("experiments", experiment.id, "read", "format")
    return Problem(
        code=refusal.code,
        path=shown(study.path),
        line=positions_of(study.path).line(*keys),
        message=f'{label(keys[:2])}: "read": {refusal}',
        advice=refusal.advice,
    )


def _refusal(form: str) -> RefusedError | None:
    try:
        formats = known_formats(form)
    except RefusedError as refusal:
        return refusal
    if form in formats:
        return None
    advice = "Is the plugin not installed that brings it?"
    return RefusedError("PR136", f"unknown format {quoted(form)}{suggestion(form, formats)}", advice)
