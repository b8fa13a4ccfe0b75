"""The ``@experiment`` decorator: what a body records, said beside the body.

The tool reads its arguments from the syntax tree, so they have to be literals; the decorator itself only
checks them and leaves the function callable as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

Body = TypeVar("Body", bound=Callable[..., None])
MetricDeclarations = Mapping[str, str | Mapping[str, Any]]
"""Unit by metric name, or a mapping with ``unit`` and what else the metric states."""


def experiment(*, metrics: MetricDeclarations, preload: Sequence[str] = ()) -> Callable[[Body], Body]:
    """Declare a function as an experiment: run once per repeat, with a :class:`Repeat` and its parameters.

    Args:
        metrics: What every repeat has to record: name to unit, or to ``{"unit": ..., "exact": ...}``.
        preload: Modules that are imported once, before repeats are forked.

    Returns:
        A decorator that returns the function itself, with ``metrics`` and ``preload`` as attributes.

    Raises:
        TypeError: If a metric has no unit, or a name isn't an identifier.
    """
    for name, declaration in metrics.items():
        if not name.isidentifier():
            raise TypeError(f"metric {name!r} is not an identifier")
        unit_of(name, declaration)

    def declare(body: Body) -> Body:
        body.metrics = dict(metrics)  # type: ignore[attr-defined]
        body.preload = tuple(preload)  # type: ignore[attr-defined]
        return body

    return declare


def unit_of(name: str, declaration: str | Mapping[str, Any]) -> str:
    """Return the unit that metric ``name`` declares; raise ``TypeError`` if it declares none."""
    unit = declaration if isinstance(declaration, str) else declaration.get("unit")
    if not isinstance(unit, str):
        raise TypeError(f'metric "{name}" has no unit; write {{"{name}": "s"}}, or "1" for a bare number')
    return unit
