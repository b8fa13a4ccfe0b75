"""Importers that other packages bring: plugins named by their entry points, loaded when one is asked for."""

from __future__ import annotations

import functools
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.registry.refusals import RefusedError, listed, quoted
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from types import CodeType

GROUP = "pytest_prereg"
"""Of entry points."""
HOOK = "pytest_prereg_importer"
_NAMES = ("name", "repeat")
_METHODS = ("recognises", "read")


class Brought(NamedTuple):
    """An importer, and the entry point that it came by."""

    importer: Any
    plugin: str
    package: str
    """What the plugin's modules are part of, or the one that it is."""

    def failed_as(self, error: BaseException) -> str:
        """Return what the importer raised, and where in the plugin."""
        return _raised(error, self.package, getattr(self.importer.read, "__code__", None))


@functools.cache
def brought_importers() -> dict[str, Brought]:
    """Return the importers of all plugins, by the name of their format.

    Raises:
        RefusedError: PR127: a plugin can't be loaded, or brings what is no importer.
    """
    importers: dict[str, Brought] = {}
    for brought in _every():
        importer, plugin = brought.importer, brought.plugin
        _check(plugin, importer)
        if other := importers.get(importer.name):
            what = f"plugins {listed([other.plugin, plugin])} both bring format {quoted(importer.name)}"
            raise RefusedError("PR127", what, "Uninstall one of them.")
        importers[importer.name] = brought
    return importers


def _every() -> list[Brought]:
    """Return what the hook of every plugin returned, one importer at a time."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # slow, and seldom needed

    found: list[Brought] = []
    for entry in sorted(set(entry_points(group=GROUP)), key=lambda entry: entry.name):
        package = entry.module.partition(".")[0]
        try:
            returned = _asked(entry.load())
        except (Exception, SystemExit) as error:  # whatever a plugin raises is told as its own
            what = f"plugin {quoted(entry.name)} failed: {_raised(error, package)}"
            advice = f'It is the entry point "{entry.value}" of group "{GROUP}".'
            raise RefusedError("PR127", what, advice) from error
        for one in returned:
            several = one if isinstance(one, list | tuple) else [one]
            found += [Brought(each, entry.name, package) for each in several]
    return found


def _raised(error: BaseException, package: str, code: CodeType | None = None) -> str:
    """Return an error with the innermost line of a package that it came through.

    Args:
        error: What was raised.
        package: Whose line is meant.
        code: What is named where it came through none: what came back was wrong, and not how it was made.
    """
    lines = [
        f"{shown(Path(frame.f_code.co_filename))}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package
    ]
    if isinstance(error, SyntaxError) and error.filename is not None:
        lines.append(f"{shown(Path(error.filename))}:{error.lineno}")
    elif not lines and code is not None:
        lines.append(f"{shown(Path(code.co_filename))}:{code.co_firstlineno}")
    where = f" ({lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {getattr(error, 'msg', error)}{where}"


def _asked(plugin: Any) -> list[Any]:
    """Return what the hook of one plugin returns.

    Raises:
        TypeError: It has the hook without its mark, so nothing would call it.
    """
    import pluggy  # noqa: PLC0415

    from pytest_prereg import hookspecs  # noqa: PLC0415

    manager = pluggy.PluginManager("pytest")
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    hook = getattr(manager.hook, HOOK)
    if hasattr(plugin, HOOK) and not hook.get_hookimpls():
        message = f'{HOOK} is not marked; write @pluggy.HookimplMarker("pytest") above it'
        raise TypeError(message)
    return list(hook())


def _check(plugin: str, importer: Any) -> None:
    """Refuse what is no importer, naming the plugin, the hook and what is missing."""
    wrong = [name for name in _NAMES if not isinstance(getattr(importer, name, None), str)]
    wrong += [name for name in _METHODS if not callable(getattr(importer, name, None))]
    if wrong:
        what = (
            f"plugin {quoted(plugin)} returned {quoted(importer)} from {HOOK}, which has no {listed(wrong)}"
        )
        raise RefusedError(
            "PR127", what, "An importer has name, repeat, recognises(name, data), read(data, complaints)."
        )
