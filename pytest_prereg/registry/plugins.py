"""Importers that other packages bring: plugins named by their entry points, loaded when one is asked for."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from pytest_prereg.registry.refusals import RefusedError, listed, quoted

GROUP = "pytest_prereg"
"""Of entry points."""
HOOK = "pytest_prereg_importer"
_NAMES = ("name", "repeat")
_METHODS = ("recognises", "read")


class Brought(NamedTuple):
    """An importer, and the entry point that it came by."""

    importer: Any
    plugin: str


@functools.cache
def brought_importers() -> dict[str, Brought]:
    """Return the importers of all plugins, by the name of their format.

    Raises:
        RefusedError: PR127: a plugin can't be loaded, or brings what is no importer.
    """
    importers: dict[str, Brought] = {}
    for plugin, importer in _every():
        _check(plugin, importer)
        if other := importers.get(importer.name):
            what = f"plugins {listed([other.plugin, plugin])} both bring format {quoted(importer.name)}"
            raise RefusedError("PR127", what, "Uninstall one of them.")
        importers[importer.name] = Brought(importer, plugin)
    return importers


def _every() -> list[tuple[str, Any]]:
    """Return what the hook of every plugin returned, one importer at a time."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # slow, and seldom needed

    found: list[tuple[str, Any]] = []
    for entry in sorted(set(entry_points(group=GROUP)), key=lambda entry: entry.name):
        try:
            returned = _asked(entry.load())
        except (Exception, SystemExit) as error:  # whatever a plugin raises is told as its own
            what = f"plugin {quoted(entry.name)} failed: {type(error).__name__}: {error}"
            advice = f'It is the entry point "{entry.value}" of group "{GROUP}".'
            raise RefusedError("PR127", what, advice) from error
        for one in returned:
            found += [(entry.name, each) for each in (one if isinstance(one, list | tuple) else [one])]
    return found


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
