"""The study's own experiment on sandboxes of Modal's: where it can be begun, and what it records."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.errors import MeasureError
from pytest_prereg.measure.repeat import Repeat

if TYPE_CHECKING:
    from types import ModuleType

    from standin_handle import Service

ROOT = Path(__file__).parents[2]
NAME = "experiments.modal_creations"
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").is_dir(), reason="no distribution has the study")


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def imported() -> ModuleType:
    sys.modules.pop(NAME, None)
    return importlib.import_module(NAME)


def test_each_sandbox_has_a_time_until_it_was_there(service: Service) -> None:
    body = imported().modal_creations
    repeat = Repeat(metrics=body.metrics)
    body(repeat, sandboxes=2, deadline=20.0)
    found = repeat.readings()
    assert not found.problems
    assert len(found.values["creation"]) >= 2
    assert (found.values["passed"], found.values["refused"]) == (2, 0)


def test_it_is_not_begun_where_there_is_no_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODAL_TOKEN_ID")
    with pytest.raises(MeasureError, match="there is no token for Modal"):
        imported()
