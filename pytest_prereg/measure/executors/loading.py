"""Imports an experiment in the fork server: heavy modules first, then the study's own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.executors.messages import Ready
from pytest_prereg.measure.executors.text import headline, traceback_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.measure.executors.messages import Setup

_OURS = (str(Path(__file__).parent), importlib.__file__, "<frozen ")
"""How the names of files begin that are in every traceback of an import, and tell nobody anything."""


def load(setup: Setup) -> Callable[..., Any]:
    """Return the experiment's function.

    The study's folder joins ``sys.path`` only after what can be found without it has been imported: a
    ``select.py`` beside the study must not become the standard library's for torch or for the server.

    Raises:
        BaseException: Whatever the imports raise; :func:`refusal` tells it.
    """
    own = _preload(setup.preload)
    sys.path[:0] = setup.paths
    for name in own:
        importlib.import_module(name)
    module = importlib.import_module(setup.module)
    _check_file(setup, getattr(module, "__file__", None))
    function: Callable[..., Any] = getattr(module, setup.function)
    return function


def refusal(setup: Setup, error: BaseException) -> Ready:
    """Return what to tell the executor about a failed import: the error, and where it arose."""
    file, line = _place(setup, error)
    last = headline(traceback.format_exception_only(error)[-1])
    return Ready(error=last, traceback=traceback_tail(error, skip=_ours(error)), file=file, line=line)


def _ours(error: BaseException) -> int:
    """Return how many frames of the traceback come before the first module of the user's."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    foreign = (place for place, file in enumerate(files) if not file.startswith(_OURS))
    return next(foreign, len(files))


def _preload(names: Sequence[str]) -> list[str]:
    """Import what is installed; return the names that only the study's own folder can have."""
    own = []
    for name in names:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            own.append(name)
        else:
            importlib.import_module(name)
    return own


def _check_file(setup: Setup, found: str | None) -> None:
    if setup.file is None or (found is not None and Path(found).samefile(setup.file)):
        return
    raise ImportError(
        f"{setup.module} was found at {found}, which hides {setup.file}; "
        "rename it, or put an __init__.py beside it to make its folder a package"
    )


def _place(setup: Setup, error: BaseException) -> tuple[str | None, int | None]:
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == setup.file]
    return (own[-1].filename, own[-1].lineno) if own else (setup.file, None)
