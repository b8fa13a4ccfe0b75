"""What other packages bring: plugins named by their entry points, loaded when one is asked for."""

from __future__ import annotations

import functools
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.registry.refusals import RefusedError, listed, quoted

if TYPE_CHECKING:
    from types import CodeType

GROUP = "pytest_prereg"
"""Of entry points."""


class _Kind(NamedTuple):
    """What a hook brings, and what that has to have."""

    hook: str
    noun: str
    texts: tuple[str, ...]
    methods: tuple[str, ...]
    advice: str


IMPORTER = _Kind(
    hook="pytest_prereg_importer",
    noun="format",
    texts=("name", "repeat"),
    methods=("recognises", "read"),
    advice="An importer has name, repeat, recognises(name, data), read(data, complaints).",
)
EXECUTOR = _Kind(
    hook="pytest_prereg_executor",
    noun="executor",
    texts=("name",),
    methods=("__call__", "start", "prepare", "launch", "attach", "collect", "close"),
    advice="An executor is a class like pytest_prereg.measure.executors.base.Elsewhere, with a name.",
)
INSTRUMENT = _Kind(
    hook="pytest_prereg_instrument",
    noun="instrument",
    texts=("name", "unit", "reads", "bias"),
    methods=("__call__", "start", "stop", "reading"),
    advice="An instrument is a class with name, unit, reads, bias, start(), stop() and reading().",
)


class Brought(NamedTuple):
    """What a plugin brings, and the entry point that it came by."""

    what: Any
    plugin: str
    package: str
    """What the plugin's modules are part of, or the one that it is."""

    def failed_as(self, error: BaseException, function: Any = None) -> str:
        """Return what was raised, and where in the plugin; in its ``function`` where that can't be told."""
        return _raised(error, self.package, getattr(function, "__code__", None))


@functools.cache
def brought_importers() -> dict[str, Brought]:
    """Return the importers of all plugins, by the name of their format.

    Raises:
        RefusedError: PR127: a plugin can't be loaded, or brings what is no importer.
    """
    return _by_name(IMPORTER)


@functools.cache
def brought_executors() -> dict[str, Brought]:
    """Return the executors of all plugins, classes as a rule, by the name that a study has for them.

    Raises:
        RefusedError: PR127: a plugin can't be loaded, or brings what is no executor.
    """
    return _by_name(EXECUTOR)


@functools.cache
def brought_instruments() -> dict[str, Brought]:
    """Return the instruments of all plugins, classes as a rule, by name.

    Raises:
        RefusedError: PR127: a plugin can't be loaded, or brings what is no instrument.
    """
    return _by_name(INSTRUMENT)


def _by_name(kind: _Kind) -> dict[str, Brought]:
    found: dict[str, Brought] = {}
    for brought in _every(kind.hook):
        _check(kind, brought)
        name = brought.what.name
        if other := found.get(name):
            plugins = listed([other.plugin, brought.plugin])
            what = f"plugins {plugins} both bring {kind.noun} {quoted(name)}"
            raise RefusedError("PR127", what, "Uninstall one of them.")
        found[name] = brought
    return found


def _every(hook: str) -> list[Brought]:
    """Return what a hook of every plugin returned, one thing at a time."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # slow, and seldom needed

    found: list[Brought] = []
    for entry in sorted(set(entry_points(group=GROUP)), key=lambda entry: entry.name):
        package = entry.module.partition(".")[0]
        try:
            returned = _asked(entry.load(), hook)
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
    from pytest_prereg.registry.toml import shown  # noqa: PLC0415 - a fork server reads no study

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


def _asked(plugin: Any, name: str) -> list[Any]:
    """Return what a hook of one plugin returns.

    Raises:
        TypeError: It has the hook without its mark, so nothing would call it.
    """
    import pluggy  # noqa: PLC0415

    from pytest_prereg import hookspecs  # noqa: PLC0415

    manager = pluggy.PluginManager("pytest")
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    hook = getattr(manager.hook, name)
    if hasattr(plugin, name) and not hook.get_hookimpls():
        message = f'{name} is not marked; write @pluggy.HookimplMarker("pytest") above it'
        raise TypeError(message)
    return list(hook())


def _check(kind: _Kind, brought: Brought) -> None:
    """Refuse what is none of its kind, naming the plugin, the hook and what is missing."""
    wrong = [name for name in kind.texts if not isinstance(getattr(brought.what, name, None), str)]
    wrong += [name for name in kind.methods if not callable(getattr(brought.what, name, None))]
    if wrong:
        returned = f"returned {quoted(brought.what)} from {kind.hook}, which has no {listed(wrong)}"
        raise RefusedError("PR127", f"plugin {quoted(brought.plugin)} {returned}", kind.advice)
