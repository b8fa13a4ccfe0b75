"""Pre-registered performance predictions, judged as pytest outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_prereg.measure.experiment import experiment
    from pytest_prereg.measure.repeat import Repeat

    __version__: str

__all__ = ["Repeat", "__version__", "experiment"]


def __getattr__(name: str) -> object:
    """Import what is public when it is first used: an unused plugin costs nothing."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("pytest-prereg")
    if name == "experiment":
        from pytest_prereg.measure.experiment import experiment  # noqa: PLC0415

        return experiment
    if name == "Repeat":
        from pytest_prereg.measure.repeat import Repeat  # noqa: PLC0415

        return Repeat
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
